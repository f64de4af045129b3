import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { nowMs } from "../clock.ts";
import { startChild } from "../processes/child-process.ts";

/** Result of opening streams. */
export type Openings = {
  /** Milliseconds from connecting to the first events, for each open stream. */
  tookMs: number[];
  /** Responses with 429. */
  rejected: number;
  /** Other errors. */
  failed: number;
};

export type OpenerQuestion =
  | { kind: "open"; urls: readonly string[]; key: string; streams: number }
  | { kind: "close" };

/** Processes that open streams and keep them open until `close`. */
export type Openers = {
  /** Opens streams evenly on all edges, hundreds of them concurrently. */
  open(order: {
    urls: readonly string[];
    key: string;
    streams: number;
  }): Promise<Openings & { elapsedMs: number }>;
  /** Closes all streams and returns how many the edges closed before. */
  close(): Promise<{ lost: number }>;
};

/** Several processes, because of the limit of open files and to share the work. */
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
        rejected: sum(parts.map(({ rejected }) => rejected)),
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
