import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { startChild } from "../processes/child-process.ts";

/** Processes that hold open streams and record when each one receives an event. */
export type Readers = {
  /** Opens streams. Resolves when each has received its first events. */
  open(url: string, key: string, streams: number): Promise<void>;
  /** Starts waiting for the next `flags` event of each stream. */
  arm(): Promise<void>;
  /** Returns the time of the event on each stream, in the clock of `nowMs`. */
  arrivals(): Promise<number[]>;
  stop(): Promise<void>;
};

export type ReaderQuestion =
  | { kind: "open"; url: string; key: string; streams: number }
  | { kind: "arm" }
  | { kind: "arrivals" };

/** Several processes, because of the limit of open files and to share the work. */
const processes = 2;

export async function startReaders(bench: Bench): Promise<Readers> {
  const children = await Promise.all(
    Array.from({ length: processes }, () =>
      startChild(bench, {
        program: join(import.meta.dirname, "readers-process.ts"),
        core: bench.cores?.load,
      }),
    ),
  );
  const askAll = (question: (index: number) => ReaderQuestion) =>
    Promise.all(children.map((child, index) => child.ask(question(index))));
  return {
    async open(url, key, streams) {
      const share = Math.floor(streams / processes);
      const first = streams - share * (processes - 1);
      await askAll((index) => ({ kind: "open", url, key, streams: index === 0 ? first : share }));
    },
    arm: async () => void (await askAll(() => ({ kind: "arm" }))),
    async arrivals() {
      const answers = (await askAll(() => ({ kind: "arrivals" }))) as { moments: number[] }[];
      return answers.flatMap(({ moments }) => moments);
    },
    stop: async () => void (await Promise.all(children.map((child) => child.stop()))),
  };
}
