import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { nowMs } from "../clock.ts";
import { startChild } from "../processes/child-process.ts";

/** What became of streams that were to be opened. */
export type Openings = {
  /** How long it took from the connection to the first events, of each that opened. */
  tookMs: number[];
  /** Answered 429. */
  refused: number;
  /** Answered anything else that is no stream, or broken off. */
  failed: number;
};

export type OpenerQuestion =
  | { kind: "open"; urls: readonly string[]; key: string; streams: number }
  | { kind: "close" };

/** Processes that open streams, and hold them until they are told to close them. */
export type Openers = {
  /** Spread evenly over the edges, hundreds of them at once. */
  open(order: {
    urls: readonly string[];
    key: string;
    streams: number;
  }): Promise<Openings & { elapsedMs: number }>;
  /** Answers how many were ended by the edges before that. */
  close(): Promise<{ lost: number }>;
};

/** Each has its own limit of open files, and its own share of the work. */
const processes = 2;

export async function startOpeners(bench: Bench): Promise<Openers> {
  const children = await Promise.all(
    Array.from({ length: processes }, () =>
      startChild(bench, {
        program: join(import.meta.dirname, "openers-process.ts"),
        core: bench.cores?.load,
      }),
    ),
  );
  return {
    async open({ streams, ...order }) {
      const share = Math.floor(streams / processes);
      const beganMs = nowMs();
      const parts = (await Promise.all(
        children.map((child, index) => {
          const count = index === 0 ? streams - share * (processes - 1) : share;
          return child.ask({ kind: "open", ...order, streams: count });
        }),
      )) as Openings[];
      return {
        elapsedMs: nowMs() - beganMs,
        tookMs: parts.flatMap(({ tookMs }) => tookMs),
        refused: sum(parts.map(({ refused }) => refused)),
        failed: sum(parts.map(({ failed }) => failed)),
      };
    },
    async close() {
      const parts = await Promise.all(children.map((child) => child.ask({ kind: "close" })));
      return { lost: sum((parts as { lost: number }[]).map(({ lost }) => lost)) };
    },
  };
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
