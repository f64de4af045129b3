import type { Readable } from "node:stream";
import { createProblem, type Problem } from "@halyard/http";

/** A client must send each `bytes` while the process waits at most `withinMs` for them. */
type Pace = { bytes: number; withinMs: number };

const defaultPace: Pace = { bytes: 64 * 1024, withinMs: 10_000 };

/**
 * Reads the parts of a body. The last one is a problem if the client is too slow, because a few slow clients would
 * otherwise take all concurrent uploads. Only the time that the process waits for the client counts. The stream is
 * left open, because the response needs its connection.
 */
export async function* partsAtPace(
  stream: Readable,
  { bytes, withinMs }: Pace = defaultPace,
): AsyncGenerator<Buffer | Problem> {
  const parts = stream.iterator({ destroyOnReturn: false });
  let received = 0;
  let waitedMs = 0;
  let next: IteratorResult<Buffer> | "late" | undefined;
  try {
    for (;;) {
      const begunAt = performance.now();
      next = await within(parts.next(), Math.max(0, withinMs - waitedMs));
      if (next === "late") yield tooSlow;
      if (next === "late" || next.done === true) return;
      received += next.value.length;
      waitedMs += performance.now() - begunAt;
      if (received >= bytes) received = waitedMs = 0;
      yield next.value;
    }
  } finally {
    // A late part would delay the end.
    if (next !== "late") await parts.return?.();
  }
}

async function within<Result>(result: Promise<Result>, ms: number): Promise<Result | "late"> {
  const late = Promise.withResolvers<"late">();
  const timer = setTimeout(() => late.resolve("late"), ms);
  try {
    return await Promise.race([result, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Without the end of the connection, the client could continue to send slowly. */
const tooSlow = createProblem(
  "VALIDATION_001",
  `The body arrived too slowly: send at least ${defaultPace.bytes} bytes in each ${defaultPace.withinMs / 1_000} s. The list of the audience is unchanged.`,
  { connection: "close" },
);
