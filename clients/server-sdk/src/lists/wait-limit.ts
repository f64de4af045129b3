import type { Clock } from "../platform.ts";
import type { RuleSet } from "../rules/rule-set.ts";

/** Maximum time that a flag keeps its previous state while chunks of lists are missing. */
export const maxWaitMs = 30_000;

type WaitLimit = {
  /** Call this after each change of the rule set. `changed` are the keys of flags that changed. */
  update(changed: readonly string[]): void;
  stop(): void;
};

type WaitLimitOptions = {
  ruleSet: RuleSet;
  clock: Clock;
  /** These flags now count as not found. */
  onChange: (keys: readonly string[]) => void;
};

/** Limits the time that flags wait for chunks. Further changes do not prolong it, unless the flag gets a newer state. */
export function createWaitLimit({ ruleSet, clock, onChange }: WaitLimitOptions): WaitLimit {
  /** The ends of the waits, in ascending order. */
  const endsAtMs = new Map<string, number>();
  let cancel: (() => void) | undefined;

  function update(changed: readonly string[]): void {
    const { withheld, flags } = ruleSet;
    const waiting = new Set<string>();
    for (const [key, { isWaiting, isSettled }] of withheld)
      if (isWaiting && (flags.has(key) || !isSettled)) waiting.add(key);
    for (const key of changed) endsAtMs.delete(key);
    for (const key of endsAtMs.keys()) if (!waiting.has(key)) endsAtMs.delete(key);
    const endMs = clock.monotonicMs() + maxWaitMs;
    for (const key of waiting) if (!endsAtMs.has(key)) endsAtMs.set(key, endMs);
    schedule();
  }

  function schedule(): void {
    cancel?.();
    const [nextMs] = endsAtMs.values();
    if (nextMs === undefined) return;
    const delayMs = Math.max(0, nextMs - clock.monotonicMs());
    cancel = clock.after(delayMs, endWaits, { background: true });
  }

  function endWaits(): void {
    const nowMs = clock.monotonicMs();
    const ended = [...endsAtMs].filter(([, endMs]) => endMs <= nowMs).map(([key]) => key);
    for (const key of ended) endsAtMs.delete(key);
    const changed = ruleSet.giveUp(ended);
    if (changed.length > 0) onChange(changed);
    schedule();
  }

  return { update, stop: () => cancel?.() };
}
