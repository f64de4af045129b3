const WINDOW_MS = 60_000;

/** Well below a second, because most deaths happen once: the out-of-memory killer, a stray `kill`. */
const FIRST_DELAY_MS = 250;

export type RestartPolicy = {
  /** Returns the delay before the next start, or undefined after too many deaths in a minute. */
  delayAfterDeath(nowMs: number): number | undefined;
};

/** The delay doubles with each death of the last minute. */
export function createRestartPolicy(maxDeaths: number): RestartPolicy {
  let recent: number[] = [];
  return {
    delayAfterDeath(nowMs) {
      recent = [...recent.filter((at) => nowMs - at < WINDOW_MS), nowMs];
      return recent.length < maxDeaths ? FIRST_DELAY_MS * 2 ** (recent.length - 1) : undefined;
    },
  };
}
