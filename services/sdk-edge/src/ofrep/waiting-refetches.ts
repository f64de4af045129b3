/**
 * Behind one address there may be several edges. One tells a client of a change; the client asks anew
 * and may reach another, to which the change is still on its way. Answered with the old values it would
 * keep them, because nobody would tell it again. So such a request waits for the next change of its
 * environment: for a moment only, and only so many at once, because a tag can be invented. Whoever has
 * a key of one environment can fill that environment's places, and not those of others.
 */
export type WaitingRefetches = {
  /**
   * Calls `resume` later: when a change has made the state known, or when patience has run out. What
   * comes back gives the waiting up. Undefined: too many wait, and this one is to be answered at once.
   */
  wait(environmentId: string, waiting: Waiting): (() => void) | undefined;
  /** The environment has changed, and can be asked about it. */
  changed(environmentId: string): void;
  readonly size: number;
};

export type Waiting = { isKnown: () => boolean; resume: () => void };

const timeoutMs = 1_000;

/** Each holds a request of a few kilobytes; together they hold some tens of megabytes. */
export const maxWaiting = 5_000;

/**
 * A tenth of all places. An edge that is a twentieth of a second behind another gets about so many
 * refetches of one environment in that time, because clients are told of a change in turn.
 */
export const maxWaitingPerEnvironment = 500;

/** Those who waited for the same change are answered in groups, and others between them. */
const resumedAtOnce = 20;

export function createWaitingRefetches(): WaitingRefetches {
  const byEnvironment = new Map<string, Map<Waiting, NodeJS.Timeout>>();
  let size = 0;

  function leave(environmentId: string, waiting: Waiting): boolean {
    const timers = byEnvironment.get(environmentId);
    const timer = timers?.get(waiting);
    if (timers === undefined || timer === undefined) return false;
    clearTimeout(timer);
    timers.delete(waiting);
    if (timers.size === 0) byEnvironment.delete(environmentId);
    size -= 1;
    return true;
  }

  function resumeSome(environmentId: string, informed: Waiting[]): void {
    for (const waiting of informed.splice(0, resumedAtOnce))
      if (leave(environmentId, waiting)) waiting.resume();
    if (informed.length > 0) setImmediate(resumeSome, environmentId, informed);
  }

  return {
    wait(environmentId, waiting) {
      const timers = byEnvironment.get(environmentId) ?? new Map<Waiting, NodeJS.Timeout>();
      if (size >= maxWaiting || timers.size >= maxWaitingPerEnvironment) return undefined;
      const timer = setTimeout(() => {
        if (leave(environmentId, waiting)) waiting.resume();
      }, timeoutMs);
      byEnvironment.set(environmentId, timers.set(waiting, timer));
      size += 1;
      return () => void leave(environmentId, waiting);
    },
    changed(environmentId) {
      const timers = byEnvironment.get(environmentId);
      if (timers === undefined) return;
      resumeSome(
        environmentId,
        [...timers.keys()].filter(({ isKnown }) => isKnown()),
      );
    },
    get size() {
      return size;
    },
  };
}
