import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { startChild } from "../processes/child-process.ts";

/** Processes that hold open streams and record when each one receives an event. */
export type OpenStreams = {
  /** Starts waiting for the next change on each stream. */
  arm(): Promise<void>;
  /** Returns the time of the change on each stream, in the clock of `nowMs`. */
  arrivals(): Promise<number[]>;
  stop(): Promise<void>;
};

export type Readers = OpenStreams & {
  /** Opens streams. Resolves when each has received its first events. */
  open(url: string, key: string, streams: number): Promise<void>;
};

/** A stream of the edge. */
export type StreamKind = {
  path: string;
  /** Begins the last of the first events. */
  firstLine: string;
  /** Begins the event of a change. */
  changeLine: string;
};

export const valuesStream: StreamKind = {
  path: "/api/v1/sdk/stream",
  firstLine: "event: heartbeat\n",
  changeLine: "event: flags\n",
};

export const rulesStream: StreamKind = {
  path: "/api/v1/sdk/ruleset/stream",
  firstLine: "event: ruleset\n",
  changeLine: "event: ruleset\n",
};

export type ReaderQuestion =
  | { kind: "open"; url: string; key: string; streams: number; stream: StreamKind }
  | { kind: "arm" }
  | { kind: "arrivals" };

/** Several processes, because of the limit of open files and to share the work. */
const processes = 2;

export async function startReaders(bench: Bench, stream = valuesStream): Promise<Readers> {
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
      const shareOf = (index: number) => (index === 0 ? first : share);
      await askAll((index) => ({ kind: "open", url, key, streams: shareOf(index), stream }));
    },
    arm: async () => void (await askAll(() => ({ kind: "arm" }))),
    async arrivals() {
      const answers = (await askAll(() => ({ kind: "arrivals" }))) as { moments: number[] }[];
      return answers.flatMap(({ moments }) => moments);
    },
    stop: async () => void (await Promise.all(children.map((child) => child.stop()))),
  };
}
