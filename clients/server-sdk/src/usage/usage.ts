import { randomUUID } from "node:crypto";
import { rejectionOf } from "../connection/rejection.ts";
import { HalyardError } from "../halyard-error.ts";
import type { Settings } from "../options.ts";
import type { Platform } from "../platform.ts";
import type { RuleSet } from "../rules/rule-set.ts";
import { outcomeOf, type Report, reportBodies, type UsageOutcome } from "./report.ts";

/**
 * Reports how often each flag was on and off, about once a minute, and nothing about users. A report that gets no
 * response is sent again with the same idempotency key, so that nothing counts twice. During an outage, counts of one
 * hour go into one report, and reports older than a day are dropped, so that the memory is bounded.
 */
type Usage = {
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

export function startUsage(options: UsageOptions): Usage {
  const reporter = new UsageReporter(options);
  reporter.schedule();
  return { close: (timeoutMs) => reporter.close(timeoutMs), stop: () => reporter.stop() };
}

/** Queues the reports, and sends them in order, one at a time. */
class UsageReporter {
  readonly #options: UsageOptions;
  #queue: Report[] = [];
  /** Time until which the counts are in reports. */
  #cutAtMs: number;
  #notBeforeMs = 0;
  #attempt: AbortController | undefined = undefined;
  #sending: Promise<void> | undefined = undefined;
  #stopped = false;
  #cancel: (() => void) | undefined = undefined;

  constructor(options: UsageOptions) {
    this.#options = options;
    this.#cutAtMs = options.platform.clock.monotonicMs();
  }

  /** Starts the timer of the next report. */
  schedule(): void {
    const { clock, random } = this.#options.platform;
    const delayMs = intervalMs + jitterMs * (random() - 0.5);
    this.#cancel = clock.after(delayMs, () => this.#tick(), { background: true });
  }

  async close(timeoutMs: number): Promise<void> {
    if (this.#stopped) return;
    const { clock } = this.#options.platform;
    this.#cancel?.();
    const cancelTimeout = clock.after(timeoutMs, () => this.stop());
    // A report that is under way must not wait for its response.
    await this.#sending;
    this.#cut(clock.monotonicMs());
    await this.#send();
    cancelTimeout();
    this.stop();
  }

  stop(): void {
    this.#stopped = true;
    this.#queue = [];
    this.#cancel?.();
    this.#attempt?.abort();
  }

  #tick(): void {
    this.schedule();
    const nowMs = this.#options.platform.clock.monotonicMs();
    // During an outage, one report an hour is enough.
    if (this.#queue.length === 0 || nowMs - this.#cutAtMs >= hourMs) this.#cut(nowMs);
    if (nowMs >= this.#notBeforeMs) void this.#send();
  }

  /** Moves the counts since the last cut into reports. */
  #cut(nowMs: number): void {
    const { platform, ruleSet } = this.#options;
    const endMs = platform.clock.wallMs();
    // Measured on the monotonic clock, because the wall clock may have been set meanwhile.
    const period = { startMs: endMs - Math.min(nowMs - this.#cutAtMs, maxAgeMs), endMs };
    this.#cutAtMs = nowMs;
    for (const body of reportBodies(ruleSet.takeCounts(), period))
      this.#queue.push({ id: randomUUID(), body, endMonotonicMs: nowMs });
    this.#queue = this.#queue.filter(({ endMonotonicMs }) => nowMs - endMonotonicMs < maxAgeMs);
  }

  /** Sends the reports in order, until one has to wait. Never rejects. */
  #send(): Promise<void> {
    this.#sending ??= this.#sendQueue().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  async #sendQueue(): Promise<void> {
    for (
      let report = this.#queue[0];
      report !== undefined && !this.#stopped;
      report = this.#queue[0]
    ) {
      const outcome = await this.#post(report);
      if (outcome.kind === "retry") {
        this.#notBeforeMs = this.#options.platform.clock.monotonicMs() + outcome.retryAfterMs;
        return;
      }
      this.#queue = this.#queue.filter((other) => other !== report);
      if (outcome.kind !== "accepted") this.#reject(outcome);
    }
  }

  #reject({ kind, status }: Extract<UsageOutcome, { status: number }>): void {
    const result = kind === "refused" ? "No more counts are sent." : "Its counts are dropped.";
    this.#options.onError(
      new HalyardError("usage", `A usage report was rejected with status ${status}. ${result}`),
    );
    if (kind === "refused") this.stop();
  }

  async #post(report: Report): Promise<UsageOutcome> {
    const attempt = new AbortController();
    this.#attempt = attempt;
    const { clock } = this.#options.platform;
    const cancelTimeout = clock.after(requestTimeoutMs, () => attempt.abort());
    try {
      return await postReport(this.#options, report, attempt.signal);
    } catch {
      return { kind: "retry", retryAfterMs: 0 };
    } finally {
      cancelTimeout();
      attempt.abort();
      this.#attempt = undefined;
    }
  }
}

/** Sends a report once. Rejects if there is no response. */
async function postReport(
  { settings, platform }: UsageOptions,
  { id, body }: Report,
  signal: AbortSignal,
): Promise<UsageOutcome> {
  const response = await platform.fetch(`${settings.baseUrl}/api/v1/sdk/usage`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${settings.serverKey}`,
      "content-type": "application/json",
      "idempotency-key": id,
    },
    body,
    signal,
    redirect: "manual",
  });
  return outcomeOf(rejectionOf(response, platform.clock.wallMs()));
}
