import { type ExitStatus, StartError, settledWithin } from "@halyard/local-backends";
import type { Ending, Releasers } from "./ending.ts";
import { describeDeath } from "./process-end.ts";
import type { Note, Steps } from "./steps.ts";

const maxDeaths = 5;
const windowMs = 60_000;

/**
 * Delay before the first restart. It is short, because most deaths happen once: the out-of-memory killer, a stray
 * `kill`.
 */
const firstDelayMs = 250;

/** Maximum time that the end of a run waits for a restart in progress. Its process stops when the run's process ends. */
const interruptionTimeoutMs = 5_000;

export type Supervision = {
  projectDir: string;
  logsDir: string;
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

type Part<P extends Process> = {
  name: string;
  /** Starts the process; `previous` is the process whose addresses the new one takes over. */
  start(previous: P | undefined, note: Note): Promise<P>;
  /**
   * Runs before the first start and before `restart`, but not after a death, which changes nothing that it prepares.
   */
  prepare?: (() => Promise<void>) | undefined;
  /** After a death, waits for `restart`: while sources are edited, a mistake in them is the likely cause. */
  waitsForChange?: boolean;
};

export type Supervised<P extends Process> = {
  name: string;
  current(): P;
  /** Stops the process, prepares it again, and starts it at the same addresses. */
  restart(): void;
  onRestarted(listener: () => void): void;
};

/**
 * Starts a process, and restarts it each time it dies, until the run ends. The delay doubles with each death within the
 * last minute. The fifth death within a minute ends the run.
 */
export async function supervise<P extends Process>(
  part: Part<P>,
  run: Supervision,
  note: Note,
): Promise<Supervised<P>> {
  await part.prepare?.();
  const supervisor = new Supervisor(part, run, await part.start(undefined, note));
  void supervisor.keepRunning();
  await run.releasers.add(() => supervisor.release());
  return supervisor;
}

class Supervisor<P extends Process> implements Supervised<P> {
  readonly name: string;
  readonly #part: Part<P>;
  readonly #run: Supervision;
  readonly #delayAfterDeath = createDelays();
  #process: P;
  #isReleased = false;
  #starting: Promise<unknown> = Promise.resolve();
  #isRestartAsked = false;
  #askedForRestart = Promise.withResolvers<void>();
  #onRestarted = () => {};

  constructor(part: Part<P>, run: Supervision, process: P) {
    this.name = part.name;
    this.#part = part;
    this.#run = run;
    this.#process = process;
  }

  current(): P {
    return this.#process;
  }

  onRestarted(listener: () => void): void {
    this.#onRestarted = listener;
  }

  restart(): void {
    this.#isRestartAsked = true;
    this.#askedForRestart.resolve();
    void this.#process.stop();
  }

  async release(): Promise<void> {
    this.#isReleased = true;
    await settledWithin(this.#starting, interruptionTimeoutMs);
    await this.#process.stop();
  }

  async keepRunning(): Promise<void> {
    for (;;) {
      const { exited, logFile } = this.#process;
      const status = await exited;
      let problem = this.#isRestartAsked ? undefined : describeDeath(this.name, status, logFile);
      do {
        if (problem !== undefined && !this.#isEnding()) await this.#awaitNextStart(problem);
        if (this.#isEnding()) return;
        const start = this.#startAgain();
        this.#starting = start;
        problem = await start;
      } while (problem !== undefined);
    }
  }

  #isEnding(): boolean {
    return this.#isReleased || this.#run.ending.hasSettled();
  }

  async #awaitNextStart(problem: string): Promise<void> {
    const { ending, steps } = this.#run;
    if (this.#part.waitsForChange) {
      steps.say(`${problem}\nWaiting for a change.`);
      await Promise.race([this.#askedForRestart.promise, ending.promise]);
      return;
    }
    const delayMs = this.#delayAfterDeath(performance.now());
    if (delayMs === undefined) {
      const message = `${this.name} died ${maxDeaths} times within a minute. ${problem}`;
      ending.settle({ kind: "died", message });
      return;
    }
    steps.say(`${problem}\nStarting ${this.name} again in ${delayMs} ms.`);
    await settledWithin(ending.promise, delayMs);
  }

  /** Returns the reason why the process did not start, or undefined. An unexpected error ends the run. */
  async #startAgain(): Promise<string | undefined> {
    const mustPrepare = this.#isRestartAsked;
    this.#isRestartAsked = false;
    this.#askedForRestart = Promise.withResolvers();
    try {
      await this.#run.steps.run(`restarting ${this.name}`, async (note) => {
        if (mustPrepare) await this.#part.prepare?.();
        this.#process = await this.#part.start(this.#process, note);
        // `demo.json` contains the new process id before the restart is announced.
        this.#onRestarted();
        return { done: `${this.name} restarted`, value: undefined };
      });
    } catch (error) {
      if (error instanceof StartError) return error.message;
      this.#run.ending.settle({ kind: "failed", error });
      return undefined;
    }
    // The sources have changed again during the start.
    if (this.#isRestartAsked) void this.#process.stop();
    return undefined;
  }
}

/** Returns a function that computes the delay before the next start, or undefined after too many deaths in a minute. */
function createDelays(): (nowMs: number) => number | undefined {
  let recent: number[] = [];
  return (nowMs) => {
    recent = [...recent.filter((at) => nowMs - at < windowMs), nowMs];
    return recent.length < maxDeaths ? firstDelayMs * 2 ** (recent.length - 1) : undefined;
  };
}
