import { PlanLimits } from "@halyard/contracts";
import { z } from "zod";

const maxNameLength = 50;

const PlansByName = z.record(z.string().min(1).max(maxNameLength), PlanLimits);
type PlansByName = z.output<typeof PlansByName>;

const limits = new Intl.ListFormat("en-GB").format(Object.keys(PlanLimits.shape));

export const plansExpectation = `JSON that gives each plan ${limits}`;

/**
 * The plans that an operator has configured, or what is wrong with them: the ends of sentences that begin
 * with the variable's name. They repeat names of plans and fields, and no values.
 */
export function parsePlans(text: string): { plans: PlansByName } | { problems: string[] } {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    // The thrown SyntaxError repeats what it stumbled over.
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
    ? `has the plan ${named}, which must have nothing else than ${limits}`
    : `has the plan ${named}, which must be an object with ${limits}`;
}
