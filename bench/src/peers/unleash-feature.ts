import type { TargetedFlag } from "../targeting/targeted-flags.ts";

/** Returns a flag as Unleash's servers send it to clients. */
export type UnleashFeature = {
  name: string;
  type: "release";
  enabled: boolean;
  strategies: readonly UnleashStrategy[];
};

export type UnleashStrategy = {
  name: "default" | "flexibleRollout";
  parameters: Readonly<Record<string, string>>;
  constraints: readonly UnleashConstraint[];
};

type UnleashConstraint = {
  contextName: string;
  operator: "IN";
  values: readonly string[];
};

export function unleashFeature(flag: TargetedFlag): UnleashFeature {
  const enabled = flag.kind !== "constant" || flag.on;
  return { name: flag.key, type: "release", enabled, strategies: [unleashStrategy(flag)] };
}

export function unleashStrategy(flag: TargetedFlag): UnleashStrategy {
  switch (flag.kind) {
    case "constant":
      return { name: "default", parameters: {}, constraints: [] };
    case "rollout": {
      const rollout = String(flag.percentage);
      const parameters = { rollout, stickiness: "userId", groupId: flag.key };
      return { name: "flexibleRollout", parameters, constraints: [] };
    }
    case "rules": {
      const constraints = [isOneOf("country", flag.countries), isOneOf("plan", [flag.plan])];
      return { name: "default", parameters: {}, constraints };
    }
  }
}

function isOneOf(contextName: string, values: readonly string[]): UnleashConstraint {
  return { contextName, operator: "IN", values };
}
