import { ConfiguredLimits } from "@halyard/contracts";
import { z } from "zod";

const maxNameLength = 50;

const PlansByName = z.record(z.string().min(1).max(maxNameLength), ConfiguredLimits);
type PlansByName = z.output<typeof PlansByName>;

const limits = new Intl.ListFormat("en-GB").format(Object.keys(ConfiguredLimits.shape));

export const plansExpectation = `JSON that gives each plan ${limits}`;

/**
 * Returns the configured plans, or the problems of the value. A problem is the end of a sentence that begins with the
 * name of the variable. It contains names of plans and fields, and no values.
 */
export function parsePlans(text: string): { plans: PlansByName } | { problems: string[] } {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    // The message of the SyntaxError contains a part of the value.
    return { problems: [`must be ${plansExpectation}`] };
  }
  const parsed = PlansByName.safeParse(given);
  return parsed.success ? { plans: parsed.data } : { problems: parsed.error.issues.map(problemOf) };
}

function problemOf(issue: z.core.$ZodIssue): string {
  const [plan, field] = issue.path.map(String);
  if (plan === undefined) return `must be ${plansExpectation}`;
  if (issue.code === "invalid_key" || plan.length > maxNameLength)
    return `has a plan whose name must be of 1 to ${maxNameLength} characters`;
  const named = JSON.stringify(plan);
  if (field !== undefined)
    return `has the plan ${named}, whose ${field} must be a whole number from 0, or null`;
  return issue.code === "unrecognized_keys"
    ? `has the plan ${named}, which must have only ${limits}`
    : `has the plan ${named}, which must be an object with ${limits}`;
}
