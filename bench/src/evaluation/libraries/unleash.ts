import { EventEmitter, once } from "node:events";
import { importPeer } from "../../peers/peers-package.ts";
import { type UnleashFeature, unleashFeature } from "../../peers/unleash-feature.ts";
import type { LoadLibrary } from "./library.ts";

/** `unleash-client` without metrics, with a repository in memory, as unleash-server uses it. */
export const loadUnleash: LoadLibrary = async (flags, users) => {
  const { Unleash, InMemStorageProvider } = await importPeer<Exports>("unleash-client");
  const repository = repositoryOf(flags.map(unleashFeature));
  const client = new Unleash({
    appName: "bench",
    url: "http://unused.invalid/",
    disableMetrics: true,
    disableAutoStart: true,
    storageProvider: new InMemStorageProvider(),
    repository,
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

function repositoryOf(features: readonly UnleashFeature[]): EventEmitter {
  const byName = new Map(features.map((feature) => [feature.name, feature]));
  const repository = new EventEmitter();
  return Object.assign(repository, {
    getToggle: (name: string) => byName.get(name),
    getToggles: () => features,
    getTogglesWithSegmentData: () => features,
    getSegment: () => undefined,
    start: async () => void repository.emit("ready"),
    stop: () => undefined,
  });
}

type Exports = {
  Unleash: new (options: object) => Client;
  InMemStorageProvider: new () => object;
};

type Client = EventEmitter & {
  start(): Promise<void>;
  isEnabled(name: string, context: object): boolean;
};
