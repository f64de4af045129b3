/** The result of an evaluation and its reason. */
export type Outcome = {
  readonly value: boolean;
  readonly variation: "on" | "off";
  readonly reason: Reason;
};

type Reason =
  | "static"
  | "split"
  | "targeting_match"
  | "default"
  | "disabled"
  | "prerequisite_failed";

/** All possible outcomes. Evaluations return these objects and allocate none. */
export const outcomes = {
  disabled: { value: false, variation: "off", reason: "disabled" },
  static: { value: true, variation: "on", reason: "static" },
  splitOn: { value: true, variation: "on", reason: "split" },
  splitOff: { value: false, variation: "off", reason: "split" },
  matchOn: { value: true, variation: "on", reason: "targeting_match" },
  matchOff: { value: false, variation: "off", reason: "targeting_match" },
  default: { value: false, variation: "off", reason: "default" },
  prerequisiteFailed: { value: false, variation: "off", reason: "prerequisite_failed" },
} as const satisfies Record<string, Outcome>;

/**
 * The outcomes by code, so that callers can store each outcome in one byte. Odd codes mean on, even codes off.
 */
export const outcomesByCode: readonly Outcome[] = [
  outcomes.disabled,
  outcomes.static,
  outcomes.splitOff,
  outcomes.splitOn,
  outcomes.matchOff,
  outcomes.matchOn,
  outcomes.default,
  // No outcome has the code 7, because odd codes mean on.
  outcomes.matchOn,
  outcomes.prerequisiteFailed,
];

export function codeOfOutcome(outcome: Outcome): number {
  return outcomesByCode.indexOf(outcome);
}
