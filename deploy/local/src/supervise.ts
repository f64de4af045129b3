import {
  type ExitStatus,
  LocalBackendError,
  type Reaper,
  settledWithin,
} from "@halyard/local-backends";
import type { Ending } from "./ending.ts";
import type { Releasers } from "./releasers.ts";
import { createRestartPolicy } from "./restart-policy.ts";
import { describeDeath } from "./service-process.ts";
import { StartError } from "./start-error.ts";
import type { Note, Steps } from "./steps.ts";

const MAX_DEATHS = 5;

/** A restart that takes longer than this when the run ends is left to the reaper. */
const INTERRUPTION_PATIENCE_MS = 5_000;

export type Supervision = {
  projectDir: string;
  logsDir: string;
  reaper: Reaper;
  releasers: Releasers;
  ending: Ending;
  steps: Steps;
  watch: boolean;
};

export type Process = {
  logFile: string;
  exited: Promise<ExitStatus>;
  stop(): Promise<unknown>;
};

export type Part<P extends Process> = {
  name: string;
  /** Starts the process; `previous` is the process whose addresses the new one takes over. */
  start(previous: P | undefined, note: Note): Promise<P>;
  /** Runs before the first start and before `restart`. A death changes nothing that it prepares. */
  prepare?: (() => Promise<void>) | undefined;
  /** Deaths within a minute after which `giveUp` is called; default: 5. */
  maxDeaths?: number;
  /** Default: ends the run. */
  giveUp?: (report: string) => void;
};

export type Supervised<P extends Process> = {
  name: string;
  current(): P;
  /** Stops the process and starts it again at its addresses. */
  restart(): Promise<void>;
  onRestarted(listener: () => void): void;
};

/** Starts a process, and starts it again with a growing delay each time it dies, until the run ends. */
export async function supervise<P extends Process>(
  part: Part<P>,
  run: Supervision,
  note: Note,
): Promise<Supervised<P>> {
  const { name } = part;
  await part.prepare?.();
  let current = await part.start(undefined, note);
  let stopping = false;
  let recovery = Promise.resolve();
  let onRestarted = () => {};
  const look = () => {
    const process = current;
    void process.exited.then((status) => {
      if (!stopping) recovery = recover(describeDeath(name, status, process.logFile));
    });
  };
  const startAgain = () =>
    run.steps.run(`restarting ${name}`, async (noteOfStep) => {
      current = await part.start(current, noteOfStep);
      look();
      onRestarted();
      return { done: `${name} restarted`, value: undefined };
    });
  const recover = createRecovery({ part, run, startAgain });
  look();
  await run.releasers.add(async () => {
    await settledWithin(recovery, INTERRUPTION_PATIENCE_MS);
    await current.stop();
  });
  return {
    name,
    current: () => current,
    async restart() {
      stopping = true;
      await current.stop();
      stopping = false;
      if (run.ending.hasSettled()) return;
      await part.prepare?.();
      await startAgain();
    },
    onRestarted(listener) {
      onRestarted = listener;
    },
  };
}

/** Returns the function that starts a dead process again, or gives up after too many deaths. */
function createRecovery(options: {
  part: Pick<Part<Process>, "name" | "maxDeaths" | "giveUp">;
  run: Supervision;
  startAgain: () => Promise<void>;
}): (death: string) => Promise<void> {
  const { name, maxDeaths = MAX_DEATHS } = options.part;
  const { ending, steps } = options.run;
  const policy = createRestartPolicy(maxDeaths);
  const endRun = (report: string) => {
    const message = `${name} died ${maxDeaths} times within a minute. ${report}`;
    ending.settle({ kind: "died", message });
  };
  const { giveUp = endRun } = options.part;
  return async (death) => {
    let report: string | undefined = death;
    while (report !== undefined && !ending.hasSettled()) {
      const delayMs = policy.delayAfterDeath(performance.now());
      if (delayMs === undefined) return giveUp(report);
      steps.say(`${report}\nStarting ${name} again in ${delayMs} ms.`);
      await settledWithin(ending.promise, delayMs);
      if (ending.hasSettled()) return;
      report = await options.startAgain().then(
        () => undefined,
        (error) => reportOf(error, ending),
      );
    }
  };
}

/** A start that fails for a known reason counts as a death. Any other error ends the run. */
function reportOf(error: unknown, ending: Ending): string | undefined {
  if (error instanceof StartError || error instanceof LocalBackendError) return error.message;
  ending.settle({ kind: "failed", error });
  return undefined;
}
