import { type AnyFlag, colorWeights } from "../targeting/targeted-flags.ts";

/** Returns a flag as Unleash's servers send it to clients. */
export function unleashFeature(flag: AnyFlag) {
  const enabled = flag.kind !== "constant" || flag.on;
  return { name: flag.key, type: "release", enabled, strategies: [unleashStrategy(flag)] };
}

function unleashStrategy(flag: AnyFlag) {
  const strategy = { name: "default", parameters: {}, constraints: [] };
  if (flag.kind === "rules") {
    const constraints = [isOneOf("country", flag.countries), isOneOf("plan", [flag.plan])];
    return { ...strategy, constraints };
  }
  if (flag.kind === "constant") return strategy;
  const parameters = { rollout: String(flag.percentage), stickiness: "userId", groupId: flag.key };
  const rollout = { ...strategy, name: "flexibleRollout", parameters };
  return flag.kind === "split" ? { ...rollout, variants } : rollout;
}

/**
 * Unleash splits the users of a rollout. Weights are in thousandths. At least one must be variable, and gets what the
 * fixed ones leave.
 */
const variants = Object.entries(colorWeights).map(([name, weight], index) => ({
  ...{ name, weight: weight * 10, weightType: index === 0 ? "variable" : "fix" },
  ...{ stickiness: "userId", payload: { type: "string", value: name } },
}));

function isOneOf(contextName: string, values: readonly string[]) {
  return { contextName, operator: "IN", values };
}
