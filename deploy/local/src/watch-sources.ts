import { type FSWatcher, watch } from "node:fs";
import { join } from "node:path";

/** An editor writes several files, and each of them several times; one restart is enough. */
const SETTLE_MS = 150;

/** Where the sources of a service are. What all of them share restarts all of them. */
const SOURCES: Record<string, string[]> = {
  management: ["services/management/src", "services/management/migrations"],
  scheduler: ["services/scheduler/src", "services/scheduler/migrations"],
  "sdk-edge": ["services/sdk-edge/src"],
  "usage-metering": ["services/usage-metering/src", "services/usage-metering/migrations"],
  "webhook-dispatcher": [
    "services/webhook-dispatcher/src",
    "services/webhook-dispatcher/migrations",
  ],
  gateway: ["deploy/gateway/src"],
};
const SHARED_SOURCES = "libs";

/** Calls back with the names of the services whose sources have changed. */
export function watchSources(
  projectDir: string,
  onChange: (services: string[]) => void,
): { close(): void } {
  const changed = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const note = (services: string[]) => {
    for (const service of services) changed.add(service);
    clearTimeout(timer);
    timer = setTimeout(() => {
      const names = [...changed];
      changed.clear();
      onChange(names);
    }, SETTLE_MS);
  };
  const watchers: FSWatcher[] = [];
  const watchDirectory = (directory: string, services: string[]) => {
    const path = join(projectDir, directory);
    watchers.push(
      watch(path, { recursive: true }, (_event, file) => {
        if (file !== null && /\.(ts|sql)$/.test(file) && !/(^|\/)test\//.test(file)) note(services);
      }),
    );
  };
  for (const [service, directories] of Object.entries(SOURCES)) {
    for (const directory of directories) watchDirectory(directory, [service]);
  }
  watchDirectory(SHARED_SOURCES, Object.keys(SOURCES));
  return {
    close() {
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
    },
  };
}
