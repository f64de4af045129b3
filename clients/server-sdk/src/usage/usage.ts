import { randomUUID } from "node:crypto";
import { parseRetryAfter } from "../connection/rejection.ts";
import { HalyardError } from "../halyard-error.ts";
import type { Settings } from "../options.ts";
import type { Platform } from "../platform.ts";
import type { RuleSet } from "../rules/rule-set.ts";
import { outcomeOfStatus, type Report, reportBodies, type UsageOutcome } from "./report.ts";

/**
 * Reports how often each flag was on and off, about once a minute, and nothing about users. A report that gets no
 * response is sent again with the same idempotency key, so that nothing counts twice. During an outage, counts of one
 * hour go into one report, and reports older than a day are dropped, so that the memory is bounded.
 */
export type Usage = {
  /** Sends the remaining counts once, within the time, and stops. */
  close(timeoutMs: number): Promise<void>;
  /** Stops without sending. */
  stop(): void;
};

type UsageOptions = {
  settings: Pick<Settings, "baseUrl" | "serverKey">;
  platform: Platform;
  ruleSet: RuleSet;
  onError: (error: HalyardError) => void;
};

const intervalMs = 60_000;
const jitterMs = 12_000;
const requestTimeoutMs = 10_000;
const hourMs = 3_600_000;
const maxAgeMs = 24 * hourMs;

export function startUsage({ settings, platform, ruleSet, onError }: UsageOptions): Usage {
  const { clock, random } = platform;
  let queue: Report[] = [];
  let cutAtMs = clock.monotonicMs();
  let notBeforeMs = 0;
  let attempt: AbortController | undefined;
  let sending: Promise<void> | undefined;
  let stopped = false;
  let cancel = schedule();

  function schedule(): () => void {
    const delayMs = intervalMs + jitterMs * (random() - 0.5);
    return clock.after(delayMs, tick, { background: true });
  }

  function tick(): void {
    cancel = schedule();
    const nowMs = clock.monotonicMs();
    // During an outage, one report an hour is enough.
    if (queue.length === 0 || nowMs - cutAtMs >= hourMs) cut(nowMs);
    if (nowMs >= notBeforeMs) void send();
  }

  /** Moves the counts since the last cut into reports. */
  function cut(nowMs: number): void {
    const endMs = clock.wallMs();
    // Measured on the monotonic clock, because the wall clock may have been set meanwhile.
    const period = { startMs: endMs - Math.min(nowMs - cutAtMs, maxAgeMs), endMs };
    cutAtMs = nowMs;
    for (const body of reportBodies(ruleSet.takeCounts(), period))
      queue.push({ id: randomUUID(), body, endMonotonicMs: nowMs });
    queue = queue.filter(({ endMonotonicMs }) => nowMs - endMonotonicMs < maxAgeMs);
  }

  /** Sends the reports in order, until one has to wait. Never rejects. */
  function send(): Promise<void> {
    sending ??= sendQueue().finally(() => {
      sending = undefined;
    });
    return sending;
  }

  async function sendQueue(): Promise<void> {
    for (let report = queue[0]; report !== undefined && !stopped; report = queue[0]) {
      const outcome = await post(report);
      if (outcome.kind === "retry") {
        notBeforeMs = clock.monotonicMs() + outcome.retryAfterMs;
        return;
      }
      queue = queue.filter((other) => other !== report);
      if (outcome.kind !== "accepted") reject(outcome);
    }
  }

  function reject({ kind, status }: Extract<UsageOutcome, { status: number }>): void {
    const result = kind === "refused" ? "No more counts are sent." : "Its counts are dropped.";
    onError(
      new HalyardError("usage", `A usage report was rejected with status ${status}. ${result}`),
    );
    if (kind === "refused") stop();
  }

  async function post({ id, body }: Report): Promise<UsageOutcome> {
    const current = new AbortController();
    attempt = current;
    const cancelTimeout = clock.after(requestTimeoutMs, () => current.abort());
    try {
      const response = await platform.fetch(`${settings.baseUrl}/api/v1/sdk/usage`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${settings.serverKey}`,
          "content-type": "application/json",
          "idempotency-key": id,
        },
        body,
        signal: current.signal,
        redirect: "manual",
      });
      const retryAfter = parseRetryAfter(response.headers.get("retry-after"), clock.wallMs());
      return outcomeOfStatus(response.status, retryAfter);
    } catch {
      return outcomeOfStatus(undefined);
    } finally {
      cancelTimeout();
      current.abort();
      attempt = undefined;
    }
  }

  function stop(): void {
    stopped = true;
    queue = [];
    cancel();
    attempt?.abort();
  }

  return {
    async close(timeoutMs) {
      if (stopped) return;
      cancel();
      const cancelTimeout = clock.after(timeoutMs, stop);
      // A report that is under way must not wait for its response.
      await sending;
      cut(clock.monotonicMs());
      await send();
      cancelTimeout();
      stop();
    },
    stop,
  };
}
