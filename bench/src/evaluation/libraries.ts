import { EventEmitter, once } from "node:events";
import { type CompiledFlag, compile, contextOf } from "@halyard/evaluation";
import { flagdFlag } from "../peers/flagd-flag.ts";
import { importPeer } from "../peers/peers-package.ts";
import { unleashFeature } from "../peers/unleash-feature.ts";
import { flagState, type TargetedFlag, type User } from "../targeting/targeted-flags.ts";

export type Library = {
  /** Evaluates all flags for one user and returns how many are on. */
  evaluateAll(user: number): number;
  /** Evaluates one flag for a user without a prepared context. */
  evaluateOne(user: number, flag: number): boolean;
};

type Load = (flags: readonly TargetedFlag[], users: readonly User[]) => Promise<Library>;

/**
 * Calls Halyard's library as the server SDK does. Each evaluation creates its context from a plain object. A constant
 * flag needs no context.
 */
const loadHalyard: Load = async (flags, users) => {
  const compiled = flags.map((flag) => compile(flagState(flag)));
  return {
    evaluateAll(user) {
      const context = contextOf(users[user]);
      let on = 0;
      for (const { constant, evaluate } of compiled)
        if ((constant ?? evaluate(context)).value) on += 1;
      return on;
    },
    evaluateOne(user, flag) {
      const { constant, evaluate } = compiled[flag] as CompiledFlag;
      return (constant ?? evaluate(contextOf(users[user]))).value;
    },
  };
};

/** `unleash-client` without metrics, with a repository in memory, as unleash-server uses it. */
const loadUnleash: Load = async (flags, users) => {
  const { Unleash, InMemStorageProvider } = await importPeer<UnleashExports>("unleash-client");
  const features = new Map(flags.map((flag) => [flag.key, unleashFeature(flag)]));
  const repository: EventEmitter = Object.assign(new EventEmitter(), {
    getToggle: (name: string) => features.get(name),
    getToggles: () => [...features.values()],
    getTogglesWithSegmentData: () => [...features.values()],
    getSegment: () => undefined,
    start: async () => void repository.emit("ready"),
    stop: () => undefined,
  });
  const client = new Unleash({
    ...{ appName: "bench", url: "http://unused.invalid/", repository },
    ...{ disableMetrics: true, disableAutoStart: true },
    storageProvider: new InMemStorageProvider(),
  });
  const ready = once(client, "ready");
  await client.start();
  await ready;
  const names = flags.map(({ key }) => key);
  const contexts = users.map(({ user_id, ...properties }) => ({ userId: user_id, properties }));
  return {
    evaluateAll(user) {
      const context = contexts[user] as object;
      let on = 0;
      for (const name of names) if (client.isEnabled(name, context)) on += 1;
      return on;
    },
    evaluateOne: (user, flag) => client.isEnabled(names[flag] as string, contexts[user] as object),
  };
};

type UnleashExports = {
  Unleash: new (
    options: object,
  ) => EventEmitter & { start(): Promise<void>; isEnabled(name: string, context: object): boolean };
  InMemStorageProvider: new () => object;
};

/**
 * `@openfeature/flagd-core`, which compiles rules to functions by default. The flags are evaluated directly,
 * which is faster than `resolveBooleanEvaluation` and `resolveAll`.
 */
const loadFlagd: Load = async (flags, users) => {
  const { FlagdCore } = await importPeer<FlagdExports>("@openfeature/flagd-core");
  const nothing = () => undefined;
  const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing };
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
      (resolvable[flag] as FlagdFlag).evaluate(contexts[user] as object).value,
  };
};

type FlagdFlag = { evaluate(context: object): { value: boolean } };
type FlagdExports = {
  FlagdCore: new (
    ...options: [storage: undefined, logger: object]
  ) => { setConfigurations(configuration: string): unknown; getFlag(key: string): FlagdFlag };
};

/** `@growthbook/growthbook` with its client for servers, without tracking. This is the fastest of its three APIs. */
const loadGrowthBook: Load = async (flags, users) => {
  const { GrowthBookClient } = await importPeer<GrowthBookExports>("@growthbook/growthbook");
  const features = Object.fromEntries(flags.map((flag) => [flag.key, growthBookFeature(flag)]));
  const client = new GrowthBookClient({}).initSync({ payload: { features } });
  const keys = flags.map(({ key }) => key);
  const contexts = users.map(({ user_id: id, ...others }) => ({ attributes: { id, ...others } }));
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
  if (flag.kind === "constant") return { defaultValue: flag.on };
  const rollout = { hashAttribute: "id", hashVersion: 2 };
  const rule =
    flag.kind === "rollout"
      ? { coverage: flag.percentage / 100, ...rollout }
      : { condition: { country: { $in: flag.countries }, plan: flag.plan } };
  return { defaultValue: false, rules: [{ force: true, ...rule }] };
}

type GrowthBook = {
  initSync(options: object): GrowthBook;
  isOn(key: string, user: object): boolean;
};
type GrowthBookExports = { GrowthBookClient: new (options: object) => GrowthBook };

export const loaders = {
  halyard: loadHalyard,
  "unleash-client": loadUnleash,
  "@openfeature/flagd-core": loadFlagd,
  "@growthbook/growthbook": loadGrowthBook,
} satisfies Record<string, Load>;
export type LibraryName = keyof typeof loaders;
