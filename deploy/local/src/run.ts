import { join } from "node:path";
import { StartError, settledWithin, startReaper } from "@halyard/local-backends";
import { bringUp } from "./bring-up.ts";
import type { Settings } from "./config.ts";
import {
  createEnding,
  createReleasers,
  endWhenAsked,
  endWithReaper,
  type Reason,
} from "./ending.ts";
import { checkGatewayPort } from "./gateway-port.ts";
import { makeHome, removeDemoFile, removeDemoFileWithUs } from "./home.ts";
import { type HomeLock, lockHome } from "./home-lock.ts";
import { describeExit } from "./process-end.ts";
import { HOST } from "./service-plans.ts";
import { removeSignInFile, removeSignInFileWithUs } from "./sign-in.ts";
import type { Steps } from "./steps.ts";

/** Maximum time that the stop waits for a step of the start. The reaper stops the remaining processes. */
const INTERRUPTION_TIMEOUT_MS = 5_000;

export type Outcome = { ok: true } | { ok: false; message: string };

/**
 * Executes one run, from taking the lock until all processes have stopped. A run ends on request, when the start fails,
 * or when a process dies too often. All started parts are then stopped in the reverse order. The reaper stops them if
 * this process is killed.
 */
export async function run(
  settings: Settings,
  options: { steps: Steps; watch: boolean; removeDemoKeys: boolean },
): Promise<Outcome> {
  const { steps, watch, removeDemoKeys } = options;
  const ending = createEnding();
  endWhenAsked(ending, settings);
  const releasers = createReleasers();
  const reaper = startReaper();
  endWithReaper(ending, reaper);
  let lock: HomeLock | undefined;
  let starting: Promise<void> | undefined;
  try {
    makeHome(settings.home);
    const say = (text: string) => steps.say(`  ${text}`);
    lock = await lockHome(settings.home, { reaperPid: reaper.pid, onStep: say });
    removeDemoFile(settings.home);
    removeSignInFile(settings.home);
    removeDemoFileWithUs(settings.home, reaper);
    removeSignInFileWithUs(settings.home, reaper);
    await checkGatewayPort({ host: HOST, port: settings.port });
    const { projectDir, home } = settings;
    const logsDir = join(home, "logs");
    const supervision = { projectDir, logsDir, reaper, releasers, ending, steps, watch };
    starting = bringUp({ ...supervision, settings, removeDemoKeys }).catch((error) => {
      ending.settle({ kind: "failed", error });
    });
    return outcomeOf(await ending.promise, steps);
  } catch (error) {
    return explainFailure(error);
  } finally {
    if (lock !== undefined) {
      removeDemoFile(settings.home);
      removeSignInFile(settings.home);
    }
    const failures = await releasers.releaseAll();
    for (const failure of failures) steps.say(`  error while stopping: ${String(failure)}`);
    if (starting !== undefined) await settledWithin(starting, INTERRUPTION_TIMEOUT_MS);
    await reaper.close();
    lock?.release();
    if (starting !== undefined) steps.say("Halyard has stopped.");
  }
}

function outcomeOf(reason: Reason, steps: Steps): Outcome {
  if (reason.kind === "asked") {
    steps.say(`\nStopping (${reason.by}) …`);
    return { ok: true };
  }
  if (reason.kind === "failed") return explainFailure(reason.error);
  const message =
    reason.kind === "died"
      ? reason.message
      : `The reaper ended ${describeExit(reason.status)}. Without it, a kill of this process would leave PostgreSQL and NATS running.`;
  return {
    ok: false,
    message: `${message}\nAll other processes have been stopped. Run npm start to start again.`,
  };
}

/** A `StartError` is shown as it is. Any other error is a bug, and is shown with its stack trace. */
function explainFailure(error: unknown): Outcome {
  if (error instanceof StartError) {
    return { ok: false, message: error.message };
  }
  const trace = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { ok: false, message: `Unexpected error: ${trace}` };
}
