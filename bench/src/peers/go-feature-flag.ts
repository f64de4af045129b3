import { type AnyFlag, colorKeys, colorShares } from "../targeting/targeted-flags.ts";
import { rulesInJsonLogic } from "./flagd-flag.ts";

/** Returns a flag in the format of GO Feature Flag. JsonLogic is the faster one of its two languages for rules. */
export function goFeatureFlag(flag: AnyFlag): object {
  if (flag.kind === "split")
    return {
      variations: Object.fromEntries(colorKeys.map((color) => [color, color])),
      defaultRule: { percentage: colorShares(flag) },
    };
  const variations = { on: true, off: false };
  if (flag.kind === "constant")
    return { variations, defaultRule: { variation: flag.on ? "on" : "off" } };
  if (flag.kind === "rollout") {
    const percentage = { on: flag.percentage, off: 100 - flag.percentage };
    return { variations, defaultRule: { percentage } };
  }
  const query = JSON.stringify(rulesInJsonLogic(flag));
  const targeting = [{ query, variation: "on" }];
  return { variations, targeting, defaultRule: { variation: "off" } };
}
