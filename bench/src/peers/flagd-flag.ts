import {
  type AnyFlag,
  colorKeys,
  colorOtherwise,
  colorShares,
} from "../targeting/targeted-flags.ts";

type FlagWithRules = Extract<AnyFlag, { kind: "rules" }>;

/** Returns a flag in the format of flagd. */
export function flagdFlag(flag: AnyFlag): object {
  if (flag.kind === "split")
    return {
      state: "ENABLED",
      variants: Object.fromEntries(colorKeys.map((color) => [color, color])),
      defaultVariant: colorOtherwise,
      targeting: { fractional: Object.entries(colorShares(flag)) },
    };
  const states = { state: "ENABLED", variants: { on: true, off: false }, defaultVariant: "off" };
  if (flag.kind === "constant") return { ...states, defaultVariant: flag.on ? "on" : "off" };
  if (flag.kind === "rollout") {
    const fractional = Object.entries({ on: flag.percentage, off: 100 - flag.percentage });
    return { ...states, targeting: { fractional } };
  }
  return { ...states, targeting: { if: [rulesInJsonLogic(flag), "on", "off"] } };
}

/** Returns the conditions of a flag in JsonLogic. */
export function rulesInJsonLogic({ countries, plan }: FlagWithRules): object {
  return { and: [{ in: [{ var: "country" }, countries] }, { "==": [{ var: "plan" }, plan] }] };
}
