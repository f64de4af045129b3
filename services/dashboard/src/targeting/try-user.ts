import type {
  AudienceTrace,
  ContextUser,
  FlagExplanation,
  RequirementTrace,
} from "../api/schema.d.ts";
import { requirementText } from "../state/words.ts";

/** A user as typed into fields. */
export type UserFields = {
  readonly id: string;
  readonly attributes: readonly { readonly name: string; readonly value: string }[];
};

/** Returns the user of the fields, as SDKs send it. Values are texts, which all operators accept. */
export function userOf({ id, attributes }: UserFields): ContextUser {
  const given = attributes.filter(({ name }) => name.trim() !== "");
  return {
    ...(id !== "" && { id }),
    attributes: Object.fromEntries(given.map(({ name, value }) => [name.trim(), value])),
  } as ContextUser;
}

export const jsonOf = (fields: UserFields): string => JSON.stringify(userOf(fields), null, 2);

/** Reads a user from JSON. Returns what is wrong with the text otherwise. */
export function userFromJson(
  text: string,
): { ok: true; user: ContextUser } | { ok: false; problem: string } {
  try {
    const user: unknown = JSON.parse(text);
    if (typeof user === "object" && user !== null && !Array.isArray(user))
      return { ok: true, user: user as ContextUser };
    return { ok: false, problem: 'Enter an object such as { "id": "user-42" }.' };
  } catch (error) {
    return { ok: false, problem: `This is not JSON. ${(error as Error).message}` };
  }
}

type ReasonContext = {
  ruleName: (index: number) => string;
  /** The attribute that selects the bucket. */
  unit: string;
};

/** Says why the flag has its value for the user. */
export function reasonText(
  { reason, value, trace }: FlagExplanation,
  { ruleName, unit }: ReasonContext,
): string {
  // A typed flag that is on says what it serves, and has no value that is true.
  const isOn = value === true || trace.serve !== undefined;
  const rule = trace.rules.find(({ matched, reached }) => matched && reached);
  const by = rule === undefined ? "" : `${ruleName(rule.index)} is the first that matches. `;
  switch (reason) {
    case "disabled":
      return "The flag is off for everyone.";
    case "prerequisite_failed":
      return unmetText(trace.requires ?? []);
    case "static":
      return "The flag is on for everyone.";
    case "default":
      return "No rule matches, so the flag is off.";
    case "targeting_match":
      return isOn ? `${by}It gives all its users the flag.` : `${by}It takes its users out.`;
    case "split":
      return `${by}${splitText(trace.split, unit)}`;
  }
}

function unmetText(requires: readonly RequirementTrace[]): string {
  const unmet = requires.find(({ held }) => !held);
  return unmet === undefined
    ? "A required flag has another value, so the flag is off."
    : `It requires that ${requirementText(unmet)}, and that flag ${valueText(unmet)} for this user. So the flag is off.`;
}

type RequiredValue = Pick<RequirementTrace, "value" | "variation">;

/** Says what a required flag gave to the user: "is off", or "serves red" for a typed flag. */
function valueText({ value, variation }: RequiredValue): string {
  const isTyped = variation !== null && variation !== (value ? "on" : "off");
  return isTyped ? `serves ${variation}` : `is ${value ? "on" : "off"}`;
}

/** Why a required flag has its value, by the reason in a trace. */
const requiredReasons: Readonly<Record<string, string>> = {
  disabled: "it is off for everyone",
  static: "it is on for everyone",
  default: "none of its rules matches",
  targeting_match: "one of its rules matches",
  split: "a percentage or a split decides",
  prerequisite_failed: "a flag that it requires has another value",
};

/** Says why a requirement holds or not, one line for each flag of the chain that decides. */
export function requirementLines({ because = [], ...first }: RequirementTrace): string[] {
  return [first, ...because].map((each) => {
    const reason = requiredReasons[each.reason] ?? each.reason;
    return `${each.flag} ${valueText(each)}: ${reason}`;
  });
}

/** Says why the user is in an audience or not. */
export function audienceReason({ held, listed, alternatives }: AudienceTrace): string {
  if (listed === true) return "the user is in its list";
  if (held) return `alternative ${alternatives.findIndex(({ matched }) => matched) + 1} matches`;
  const notListed = listed === false ? "the user is not in its list, and " : "";
  return alternatives.length === 0
    ? `${notListed}it has no alternatives`
    : `${notListed}no alternative matches`;
}

function splitText(split: FlagExplanation["trace"]["split"], unit: string): string {
  if (split === undefined) return "A percentage decides.";
  const { bucket, percentage } = split;
  const missing = unit === "id" ? "an id" : `the attribute ${unit}`;
  if (bucket === null && percentage === 100)
    return `A split decides by the user's ${unit}, so the flag is off for a user without ${missing}.`;
  if (bucket === null)
    return `The percentage is ${percentage}, and a user without ${missing} is outside every percentage below 100.`;
  if (percentage === 100) return "A split decides.";
  const included = Math.round(percentage * 100);
  const place = bucket < included ? "inside" : "outside";
  if (included === 0) return `The percentage is 0, so no user gets the flag. Bucket: ${bucket}.`;
  return `The user's bucket is ${bucket} of 0 to 9999. ${percentage} % includes the buckets up to ${included - 1}, so the user is ${place}.`;
}

/** Says which variation of a split has the bucket of the user. Returns undefined unless a split decides. */
export function servedReason({ variation, trace }: FlagExplanation): string | undefined {
  const { serve, bucket } = trace;
  if (serve === undefined || !("split" in serve) || typeof bucket !== "number") return undefined;
  const { ranges = [] } = serve.split.find((share) => share.variation === variation) ?? {};
  const range = ranges.find(([from = 0, to = 0]) => from <= bucket && bucket < to);
  const among = range === undefined ? "" : `, which has the buckets ${rangeText(range)}`;
  const others = ranges.length - 1;
  const more = others > 0 ? ` and ${others} more ${others === 1 ? "range" : "ranges"}` : "";
  return `The user's bucket in the split is ${bucket} of 0 to 9999. That is one of ${variation}${among}${more}.`;
}

const rangeText = ([from = 0, to = 0]: readonly number[]): string => `${from} to ${to - 1}`;

const obstacles: Readonly<Record<string, string>> = {
  attribute_missing: "the user has no such attribute",
  attribute_empty: "the attribute is an empty list",
  wrong_type: "the attribute has a type that the operator does not take",
  not_comparable: "the attribute is not what the operator compares",
  text_too_long: "the attribute is too long for the expression",
  invalid_condition: "another release stored this condition, and this one cannot evaluate it",
};

/** Says why a condition could not be evaluated. */
export const obstacleText = (obstacle: string): string => obstacles[obstacle] ?? obstacle;
