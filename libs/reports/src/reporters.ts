/**
 * The processes that report on a subject of core NATS, with the state of each. A process that has been silent for too
 * long is forgotten.
 *
 * Silence is counted in ticks of a timer, not by the clock. After this process was suspended, the timer fires only
 * once, and the process reads the reports that arrived meanwhile before another process counts as silent.
 */
type Reporters<State> = {
  get(id: string): State | undefined;
  /** Records a report. Returns false for a new process beyond the maximum, which stays unknown. */
  set(id: string, state: State): boolean;
  delete(id: string): void;
  states(): Iterable<State>;
  /** Counts silence, and returns the ids of the processes that were forgotten. Call it only while reports can arrive. */
  tick(): string[];
  /** Records that reports were lost. Every known process gets the full time to report again. */
  interrupted(): void;
};

export function createReporters<State>(options: {
  silentAfterTicks: number;
  /** Bounds the memory if a compromised process reports under many ids. */
  maxReporters: number;
}): Reporters<State> {
  const { silentAfterTicks, maxReporters } = options;
  const states = new Map<string, State>();
  const silentTicks = new Map<string, number>();

  function forget(id: string): void {
    states.delete(id);
    silentTicks.delete(id);
  }

  return {
    get: (id) => states.get(id),
    set(id, state) {
      if (!states.has(id) && states.size >= maxReporters) return false;
      states.set(id, state);
      silentTicks.set(id, 0);
      return true;
    },
    delete: forget,
    states: () => states.values(),
    tick() {
      for (const [id, ticks] of silentTicks) silentTicks.set(id, ticks + 1);
      const silent = [...silentTicks].filter(([, ticks]) => ticks > silentAfterTicks);
      for (const [id] of silent) forget(id);
      return silent.map(([id]) => id);
    },
    interrupted() {
      for (const id of silentTicks.keys()) silentTicks.set(id, 0);
    },
  };
}
