import { importPeer } from "../../peers/peers-package.ts";
import type { TargetedFlag } from "../../targeting/targeted-flags.ts";
import type { LoadLibrary } from "./library.ts";

/**
 * `@openfeature/flagd-core`, which compiles rules to functions by default. The flags are evaluated directly,
 * which is faster than `resolveBooleanEvaluation` and `resolveAll`.
 */
export const loadFlagd: LoadLibrary = async (flags, users) => {
  const { FlagdCore } = await importPeer<Exports>("@openfeature/flagd-core");
  const core = new FlagdCore(undefined, silent);
  const definitions = flags.map((flag) => [flag.key, flagdFlag(flag)]);
  core.setConfigurations(JSON.stringify({ flags: Object.fromEntries(definitions) }));
  const resolvable = flags.map(({ key }) => core.getFlag(key));
  const contexts = users.map(({ user_id, ...others }) => ({ targetingKey: user_id, ...others }));
  return {
    evaluateAll(user) {
      const context = contexts[user] as object;
      let on = 0;
      for (const flag of resolvable) if (flag.evaluate(context).value) on += 1;
      return on;
    },
    evaluateOne: (user, flag) =>
      (resolvable[flag] as Flag).evaluate(contexts[user] as object).value,
  };
};

const nothing = () => undefined;
const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** Returns the flagd definition of a flag. */
function flagdFlag(flag: TargetedFlag): object {
  const states = { state: "ENABLED", variants: { on: true, off: false } };
  switch (flag.kind) {
    case "constant":
      return { ...states, defaultVariant: flag.on ? "on" : "off" };
    case "rollout": {
      const shares = [
        ["on", flag.percentage],
        ["off", 100 - flag.percentage],
      ];
      return { ...states, defaultVariant: "off", targeting: { fractional: shares } };
    }
    case "rules": {
      const country = { in: [{ var: "country" }, flag.countries] };
      const plan = { "==": [{ var: "plan" }, flag.plan] };
      const targeting = { if: [{ and: [country, plan] }, "on", "off"] };
      return { ...states, defaultVariant: "off", targeting };
    }
  }
}

type Exports = {
  FlagdCore: new (
    storage: undefined,
    logger: object,
  ) => {
    setConfigurations(configuration: string): unknown;
    getFlag(key: string): Flag;
  };
};

type Flag = { evaluate(context: object): { value: boolean } };
