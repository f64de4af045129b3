/** What a flag answers somebody, and why. */
export type Outcome = {
  readonly value: boolean;
  readonly variation: "on" | "off";
  readonly reason: Reason;
};

export type Reason = "static" | "split" | "targeting_match" | "default" | "disabled";

/** All outcomes that there are. Evaluations hand these objects out and make none. */
export const outcomes = {
  disabled: { value: false, variation: "off", reason: "disabled" },
  static: { value: true, variation: "on", reason: "static" },
  splitOn: { value: true, variation: "on", reason: "split" },
  splitOff: { value: false, variation: "off", reason: "split" },
  matchOn: { value: true, variation: "on", reason: "targeting_match" },
  matchOff: { value: false, variation: "off", reason: "targeting_match" },
  default: { value: false, variation: "off", reason: "default" },
} as const satisfies Record<string, Outcome>;

/**
 * The outcomes in an order that gives each a number, for whoever keeps many of them in a byte each. Those
 * with odd numbers are on.
 */
export const outcomesByNumber: readonly Outcome[] = [
  outcomes.disabled,
  outcomes.static,
  outcomes.splitOff,
  outcomes.splitOn,
  outcomes.matchOff,
  outcomes.matchOn,
  outcomes.default,
];

export function numberOfOutcome(outcome: Outcome): number {
  return outcomesByNumber.indexOf(outcome);
}
