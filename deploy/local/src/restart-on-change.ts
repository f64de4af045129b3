import { StartError } from "./start-error.ts";
import type { Supervision } from "./supervise.ts";
import type { SupervisedService } from "./supervised-service.ts";
import { watchSources } from "./watch-sources.ts";

/** Restarts services one after another when their sources change, as long as the run lasts. */
export async function restartOnChange(
  services: SupervisedService[],
  context: Supervision,
): Promise<void> {
  let queue = Promise.resolve();
  const restart = async (name: string) => {
    const service = services.find((candidate) => candidate.name === name);
    if (service === undefined || context.ending.hasSettled()) return;
    try {
      await service.restart();
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      context.steps.say(`${error.message}\nWaiting for a change.`);
    }
  };
  const watcher = watchSources(context.projectDir, (names) => {
    for (const name of names) queue = queue.then(() => restart(name));
  });
  await context.releasers.add(async () => {
    watcher.close();
    await queue;
  });
}
