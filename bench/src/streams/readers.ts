import type { Bench } from "../benchmark.ts";
import { startChild } from "../processes/child-process.ts";
import type { ReadersApi } from "./readers-process.ts";

/** A stream of the edge. */
export type StreamKind = {
  path: string;
  /** Begins the last of the first events. */
  firstLine: string;
  /** Begins the event of a change. */
  changeLine: string;
};

const path = "/api/v1/sdk/stream";
const [heartbeat, flags, ruleset] = ["event: heartbeat\n", "event: flags\n", "event: ruleset\n"];
export const valuesStream: StreamKind = { path, firstLine: heartbeat, changeLine: flags };
export const rulesStream: StreamKind = {
  ...{ path: "/api/v1/sdk/ruleset/stream?format=2", firstLine: ruleset, changeLine: ruleset },
};

export type Opening = { urls: readonly string[]; key: string; streams: number; stream: StreamKind };

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

/** Open streams whose events are recorded. */
export type OpenStreams = Pick<
  Awaited<ReturnType<typeof startReaders>>,
  "arm" | "arrivals" | "stop"
>;

/** Several processes, because of the limit of open files and to share the work. */
const processes = 2;

/** Starts processes that open streams, record their events, and keep them open until `close`. */
export async function startReaders(bench: Bench) {
  const children = await Promise.all(
    Array.from({ length: processes }, () =>
      startChild<ReadersApi>(bench, { program: "streams/readers-process.ts", core: "load" }),
    ),
  );
  const all = <T>(call: (child: (typeof children)[number], index: number) => Promise<T>) =>
    Promise.all(children.map(call));
  return {
    /** Returns how long each open stream took, and the number of responses with 429. The others failed. */
    async open({ streams, ...opening }: Opening) {
      const share = Math.floor(streams / processes);
      const shareOf = (index: number) => (index === 0 ? streams - share * (processes - 1) : share);
      const parts = await all(({ call }, index) =>
        call.open({ ...opening, streams: shareOf(index) }),
      );
      const tookMs = parts.flatMap((part) => part.tookMs);
      return { tookMs, rejected: sum(parts.map((part) => part.rejected)) };
    },
    /** Starts waiting for the next change on each stream. */
    arm: (): Promise<unknown> => all(({ call }) => call.arm()),
    /** Returns the time of the change on each stream, in the clock of `nowMs`. */
    arrivals: async () => (await all(({ call }) => call.arrivals())).flat(),
    /** Returns how many streams the edges had closed. */
    close: async () => sum(await all(({ call }) => call.close())),
    stop: (): Promise<unknown> => all(({ stop }) => stop()),
  };
}

/** @throws Error if a stream does not open */
export async function openStreams(bench: Bench, opening: Opening): Promise<OpenStreams> {
  const readers = await startReaders(bench);
  const { tookMs } = await readers.open(opening);
  if (tookMs.length < opening.streams)
    throw new Error(`only ${tookMs.length} of ${opening.streams} streams opened`);
  return readers;
}
