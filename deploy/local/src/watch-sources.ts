import { type FSWatcher, watch } from "node:fs";
import { join } from "node:path";
import { programDirs } from "./config.ts";
import { hasSchema } from "./database.ts";
import type { SupervisedService } from "./service-process.ts";
import type { Supervision } from "./supervise.ts";

/**
 * Time without changes before the restart. An editor writes several files, each several times; one restart is enough.
 */
const settleMs = 150;

/** A change in the shared sources restarts all services. */
const sharedSources = "libs";

/** Restarts services when their sources change, until the run ends. */
export async function restartOnChange(
  services: SupervisedService[],
  run: Supervision,
): Promise<void> {
  const changed = new Set<string>();
  const restartChanged = () => {
    for (const service of services) if (changed.has(service.name)) service.restart();
    changed.clear();
  };
  let timer: NodeJS.Timeout | undefined;
  const watchDirectory = (directory: string, names: string[]): FSWatcher =>
    watch(join(run.projectDir, directory), { recursive: true }, (_event, file) => {
      if (file === null || !/\.(ts|sql)$/.test(file) || /(^|\/)test\//.test(file)) return;
      for (const name of names) changed.add(name);
      clearTimeout(timer);
      timer = setTimeout(restartChanged, settleMs);
    });
  const watchers = Object.entries(programDirs).flatMap(([name, directory]) =>
    ["src", ...(hasSchema(name) ? ["migrations"] : [])].map((part) =>
      watchDirectory(join(directory, part), [name]),
    ),
  );
  watchers.push(watchDirectory(sharedSources, Object.keys(programDirs)));
  await run.releasers.add(async () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  });
}
