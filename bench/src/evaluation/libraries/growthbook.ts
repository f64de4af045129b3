import { importPeer } from "../../peers/peers-package.ts";
import type { TargetedFlag } from "../../targeting/targeted-flags.ts";
import type { LoadLibrary } from "./library.ts";

/**
 * `@growthbook/growthbook` with its client for servers, without tracking. This is the fastest of its three
 * APIs.
 */
export const loadGrowthBook: LoadLibrary = async (flags, users) => {
  const { GrowthBookClient } = await importPeer<Exports>("@growthbook/growthbook");
  const features = Object.fromEntries(flags.map((flag) => [flag.key, growthBookFeature(flag)]));
  const client = new GrowthBookClient({}).initSync({ payload: { features } });
  const keys = flags.map(({ key }) => key);
  const contexts = users.map(({ user_id, ...others }) => ({
    attributes: { id: user_id, ...others },
  }));
  return {
    evaluateAll(user) {
      const context = contexts[user] as object;
      let on = 0;
      for (const key of keys) if (client.isOn(key, context)) on += 1;
      return on;
    },
    evaluateOne: (user, flag) => client.isOn(keys[flag] as string, contexts[user] as object),
  };
};

/** Returns a flag as GrowthBook's API sends it to clients. */
function growthBookFeature(flag: TargetedFlag): object {
  switch (flag.kind) {
    case "constant":
      return { defaultValue: flag.on };
    case "rollout": {
      const coverage = flag.percentage / 100;
      const rule = { force: true, coverage, hashAttribute: "id", hashVersion: 2 };
      return { defaultValue: false, rules: [rule] };
    }
    case "rules": {
      const condition = { country: { $in: flag.countries }, plan: flag.plan };
      return { defaultValue: false, rules: [{ force: true, condition }] };
    }
  }
}

type Exports = { GrowthBookClient: new (options: object) => Client };

type Client = {
  initSync(options: object): Client;
  isOn(key: string, user: object): boolean;
};
