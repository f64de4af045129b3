import type { Platform } from "../platform.ts";

/** Result of a request without a complete response. */
export type NoResponse =
  | { kind: "unreachable"; cause: unknown }
  | { kind: "timed_out"; timeoutMs: number }
  | { kind: "ended_by_client" };

type Bounds = {
  clock: Platform["clock"];
  /** Aborted with a `NoResponse` to end the request. */
  attempt: AbortController;
};

/** Maximum duration of a request, including its body. */
const timeoutMs = 20_000;

/** Runs a request that uses the signal of `attempt`, for a limited time. Never rejects. */
export async function boundedRequest<T>(
  { clock, attempt }: Bounds,
  request: () => Promise<T>,
): Promise<T | NoResponse> {
  const timedOut: NoResponse = { kind: "timed_out", timeoutMs };
  const cancel = clock.after(timeoutMs, () => attempt.abort(timedOut));
  try {
    return await request();
  } catch (cause) {
    return attempt.signal.aborted ? attempt.signal.reason : { kind: "unreachable", cause };
  } finally {
    cancel();
    // Releases the connection of a response whose body was not read.
    attempt.abort();
  }
}
