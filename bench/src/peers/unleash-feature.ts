import type { TargetedFlag } from "../targeting/targeted-flags.ts";

/** Returns a flag as Unleash's servers send it to clients. */
export function unleashFeature(flag: TargetedFlag) {
  const enabled = flag.kind !== "constant" || flag.on;
  return { name: flag.key, type: "release", enabled, strategies: [unleashStrategy(flag)] };
}

function unleashStrategy(flag: TargetedFlag) {
  const strategy = { name: "default", parameters: {}, constraints: [] };
  if (flag.kind === "rules") {
    const constraints = [isOneOf("country", flag.countries), isOneOf("plan", [flag.plan])];
    return { ...strategy, constraints };
  }
  if (flag.kind === "constant") return strategy;
  const parameters = { rollout: String(flag.percentage), stickiness: "userId", groupId: flag.key };
  return { ...strategy, name: "flexibleRollout", parameters };
}

function isOneOf(contextName: string, values: readonly string[]) {
  return { contextName, operator: "IN", values };
}
