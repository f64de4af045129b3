import { StartError } from "./start-error.ts";
import type { SupervisedService, Supervision } from "./supervised-service.ts";
import { watchSources } from "./watch-sources.ts";

/** Restarts services one after another when their sources change, as long as the run lasts. */
export async function restartOnChange(
  services: SupervisedService[],
  context: Supervision,
  onRestarted: () => void,
): Promise<void> {
  let queue = Promise.resolve();
  const restart = async (name: string) => {
    const service = services.find((candidate) => candidate.current().name === name);
    if (service === undefined || context.ending.hasSettled()) return;
    try {
      await context.steps.run(`restarting ${name}`, async () => {
        await service.restart();
        return { done: `${name} restarted`, value: undefined };
      });
      onRestarted();
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
