import type { ExitStatus } from "@halyard/local-backends";
import { StartError } from "@halyard/local-backends";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { createEnding, createReleasers } from "../src/ending.ts";
import { type Process, type Supervision, supervise } from "../src/supervise.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

type PlayedProcess = Process & { number: number; die(): void };

/** Returns fake processes that start without delay, and a run that collects its output. */
function playedRun() {
  const started: PlayedProcess[] = [];
  const said: string[] = [];
  const ending = createEnding();
  const releasers = createReleasers();
  const steps: Supervision["steps"] = {
    say: (text) => void said.push(text),
    run: async (_name, work) => (await work(() => {})).value,
  };
  const run = { ending, releasers, steps } as Supervision;
  const start = async (previous?: PlayedProcess): Promise<PlayedProcess> => {
    const { promise: exited, resolve } = Promise.withResolvers<ExitStatus>();
    const die = () => resolve({ code: 1, signal: null });
    const stop = async () => die();
    const number = (previous?.number ?? 0) + 1;
    const process = { number, logFile: "/no/log", exited, die, stop };
    started.push(process);
    return process;
  };
  return { run, ending, releasers, started, said, start };
}

describe("given a supervised process", () => {
  it("replaces a dead process, and passes the predecessor to the new one", async () => {
    const { run, started, start } = playedRun();
    const supervised = await supervise({ name: "edge", start }, run, () => {});
    const restarted = jest.fn();
    supervised.onRestarted(restarted);

    supervised.current().die();
    await jest.advanceTimersByTimeAsync(250);

    expect(supervised.current().number).toBe(2);
    expect(started).toHaveLength(2);
    expect(restarted).toHaveBeenCalledTimes(1);
  });

  it("counts a failed start as a death, and ends the run with its message", async () => {
    const { run, ending, said, start } = playedRun();
    const fail = async (previous?: PlayedProcess) => {
      if (previous === undefined) return start();
      throw new StartError("The port is taken.");
    };
    const supervised = await supervise({ name: "edge", start: fail }, run, () => {});

    supervised.current().die();
    await jest.advanceTimersByTimeAsync(250 + 500 + 1000 + 2000);

    expect(said.slice(1)).toEqual([
      "The port is taken.\nStarting edge again in 500 ms.",
      "The port is taken.\nStarting edge again in 1000 ms.",
      "The port is taken.\nStarting edge again in 2000 ms.",
    ]);
    expect(await ending.promise).toEqual({
      kind: "died",
      message: "edge died 5 times within a minute. The port is taken.",
    });
  });

  it("ignores deaths that are a minute old", async () => {
    const { run, said, start } = playedRun();
    const supervised = await supervise({ name: "edge", start }, run, () => {});

    for (const delayMs of [250, 500, 1000, 2000]) {
      supervised.current().die();
      await jest.advanceTimersByTimeAsync(delayMs);
    }
    await jest.advanceTimersByTimeAsync(60_000);
    supervised.current().die();
    await jest.advanceTimersByTimeAsync(0);

    expect(said.at(-1)).toContain("Starting edge again in 250 ms.");
  });

  it("waits for a change after a death if sources are watched", async () => {
    const { run, said, started, start } = playedRun();
    const part = { name: "edge", start, waitsForChange: true };
    const supervised = await supervise(part, run, () => {});

    supervised.current().die();
    await jest.advanceTimersByTimeAsync(60_000);
    expect(started).toHaveLength(1);
    expect(said.at(-1)).toContain("Waiting for a change.");
    supervised.restart();
    await jest.advanceTimersByTimeAsync(0);

    expect(supervised.current().number).toBe(2);
  });

  it("ends the run when a restart fails with an unexpected error", async () => {
    const { run, ending, start } = playedRun();
    const error = new Error("unknown");
    const fail = async (previous?: PlayedProcess) => {
      if (previous === undefined) return start();
      throw error;
    };
    const supervised = await supervise({ name: "edge", start: fail }, run, () => {});

    supervised.current().die();
    await jest.advanceTimersByTimeAsync(250);

    expect(await ending.promise).toEqual({ kind: "failed", error });
  });

  it("does not restart the process when the run ends during the delay", async () => {
    const { run, ending, releasers, started, start } = playedRun();
    const supervised = await supervise({ name: "edge", start }, run, () => {});

    supervised.current().die();
    await jest.advanceTimersByTimeAsync(100);
    ending.settle({ kind: "asked", by: "SIGTERM" });
    await releasers.releaseAll();
    await jest.advanceTimersByTimeAsync(60_000);

    expect(started).toHaveLength(1);
  });

  it("stops a process whose restart finishes while the run ends", async () => {
    const { run, ending, releasers, started, start } = playedRun();
    const gate = Promise.withResolvers<void>();
    const slow = async (previous?: PlayedProcess) => {
      if (previous !== undefined) await gate.promise;
      return start(previous);
    };
    const supervised = await supervise({ name: "edge", start: slow }, run, () => {});

    supervised.current().die();
    await jest.advanceTimersByTimeAsync(250);
    ending.settle({ kind: "asked", by: "SIGTERM" });
    const released = releasers.releaseAll();
    gate.resolve();
    await released;

    expect(started).toHaveLength(2);
    await expect(started[1]?.exited).resolves.toEqual({ code: 1, signal: null });
  });

  it("does not count a requested restart as a death", async () => {
    const { run, said, start } = playedRun();
    const prepare = jest.fn(async () => {});
    const supervised = await supervise({ name: "edge", prepare, start }, run, () => {});

    await supervised.restart();
    await jest.advanceTimersByTimeAsync(60_000);

    expect(supervised.current().number).toBe(2);
    expect(prepare).toHaveBeenCalledTimes(2);
    expect(said).toEqual([]);
  });
});
