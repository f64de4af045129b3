import { rmSync } from "node:fs";
import { join } from "node:path";
import { StartError, settledWithin } from "@halyard/local-backends";
import { bringUp } from "./bring-up.ts";
import type { Settings } from "./config.ts";
import { createEnding, createReleasers, endWhenAsked, type Reason } from "./ending.ts";
import { chooseGatewayPort } from "./gateway-port.ts";
import { demoFileIn, doctorFileIn, makeHome } from "./home.ts";
import { type HomeLock, lockHome } from "./home-lock.ts";
import { HOST } from "./service-plans.ts";
import type { Steps } from "./steps.ts";

/** Maximum time that the stop waits for a step of the start. Its processes stop when this process ends. */
const INTERRUPTION_TIMEOUT_MS = 5_000;

/** Message to the launcher, which removes the files if the process of the run is killed. */
export type RunDescription = { files: string[]; startedByNpm: boolean };

/**
 * Executes one run, from taking the lock until all processes have stopped. A run ends on request, when the start fails,
 * or when a process dies too often. All started parts are then stopped in the reverse order. Returns the error message;
 * undefined after a request.
 */
export async function run(
  settings: Settings,
  options: { steps: Steps; watch: boolean; removeDemoKeys: boolean },
): Promise<string | undefined> {
  const { steps, watch, removeDemoKeys } = options;
  const ending = createEnding();
  endWhenAsked(ending);
  const releasers = createReleasers();
  // They contain keys, and ids of processes that end with the run.
  const files = [demoFileIn(settings.home), doctorFileIn(settings.home)];
  let lock: HomeLock | undefined;
  let starting: Promise<void> | undefined;
  try {
    makeHome(settings.home);
    const say = (text: string) => steps.say(`  ${text}`);
    lock = await lockHome(settings.home, { launcherPid: process.ppid, onStep: say });
    removeAll(files);
    const description: RunDescription = { files, startedByNpm: settings.startedByNpm };
    process.send?.(description);
    const port = await chooseGatewayPort({ host: HOST, port: settings.port });
    const { projectDir, home } = settings;
    const logsDir = join(home, "logs");
    const supervision = { projectDir, logsDir, releasers, ending, steps, watch };
    starting = bringUp({ ...supervision, settings: { ...settings, port }, removeDemoKeys }).catch(
      (error) => {
        ending.settle({ kind: "failed", error });
      },
    );
    return explainEnd(await ending.promise, steps);
  } catch (error) {
    return explainFailure(error);
  } finally {
    if (lock !== undefined) removeAll(files);
    const failures = await releasers.releaseAll();
    for (const failure of failures) steps.say(`  error while stopping: ${String(failure)}`);
    if (starting !== undefined) await settledWithin(starting, INTERRUPTION_TIMEOUT_MS);
    lock?.release();
    if (starting !== undefined) steps.say("Halyard has stopped.");
  }
}

function removeAll(files: readonly string[]): void {
  for (const file of files) rmSync(file, { force: true });
}

function explainEnd(reason: Reason, steps: Steps): string | undefined {
  if (reason.kind === "failed") return explainFailure(reason.error);
  if (reason.kind === "died")
    return `${reason.message}\nAll other processes have been stopped. Run npm start to start again.`;
  steps.say(`\nStopping (${reason.by}) …`);
  return undefined;
}

/** A `StartError` is shown as it is. Any other error is a bug, and is shown with its stack trace. */
function explainFailure(error: unknown): string {
  if (error instanceof StartError) return error.message;
  return `Unexpected error: ${error instanceof Error ? (error.stack ?? error.message) : error}`;
}
