import type { Clock } from "./platform.ts";

/** Knows whether the flags are current: a stream is open, or the last poll is recent. */
type Freshness = {
  readonly isCurrent: boolean;
  /** The service confirmed the flags. A poll is valid for two intervals. */
  confirmed(source: "stream" | "poll"): void;
  /** Changes no longer arrive. */
  lost(): void;
  stop(): void;
};

type FreshnessOptions = {
  clock: Clock;
  pollIntervalMs: number;
  /** Called at the first confirmation, and at the first one after each `onStale`. */
  onCurrent: () => void;
  onStale: () => void;
};

/** Delay of the event `stale`. Most reconnections take less, and applications need not notice them. */
const staleAfterMs = 15_000;

export function createFreshness(options: FreshnessOptions): Freshness {
  const { clock, pollIntervalMs, onCurrent, onStale } = options;
  let isStreaming = false;
  let validUntilMs = clock.monotonicMs();
  let announced: "none" | "current" | "stale" = "none";
  let cancel: () => void;
  expectStale();

  function isCurrent(): boolean {
    return isStreaming || clock.monotonicMs() < validUntilMs;
  }

  function expectStale(): void {
    const delayMs = validUntilMs + staleAfterMs - clock.monotonicMs();
    cancel = clock.after(Math.max(0, delayMs), becomeStale, { background: true });
  }

  function becomeStale(): void {
    if (announced === "stale") return;
    announced = "stale";
    onStale();
  }

  return {
    get isCurrent() {
      return isCurrent();
    },
    confirmed(source) {
      // Heartbeats confirm a stream all the time, and need no timer.
      if (source === "stream" && isStreaming) return;
      cancel();
      isStreaming = source === "stream";
      if (source === "poll") {
        validUntilMs = clock.monotonicMs() + 2 * pollIntervalMs;
        expectStale();
      }
      if (announced === "current") return;
      announced = "current";
      onCurrent();
    },
    lost() {
      // Further failures must not delay the event.
      if (!isCurrent()) return;
      cancel();
      isStreaming = false;
      validUntilMs = clock.monotonicMs();
      expectStale();
    },
    stop() {
      cancel();
      isStreaming = false;
      validUntilMs = clock.monotonicMs();
    },
  };
}
