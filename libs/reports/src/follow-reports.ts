import type { Checked } from "@halyard/contracts";
import { parseJson, watchConnection } from "@halyard/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";

export type FollowedReports = {
  /** True while NATS is connected and reports can arrive. */
  isConnected(): boolean;
  stop(): void;
};

/**
 * Receives the reports of processes on a subject of core NATS until it is stopped. Invalid reports are ignored, and the
 * first one of each tick is logged.
 */
export function followReports<Report>(options: {
  connection: NatsConnection;
  subject: string;
  /** A larger report is not parsed. */
  maxBytes: number;
  check: (report: unknown) => Checked<Report>;
  /** Returns the reason if it ignores the report. */
  onReport: (report: Report, subject: string) => string | undefined;
  tickMs: number;
  /** Called at every interval at which NATS is connected. */
  onTick: () => void;
  /** Called when the connection to NATS is lost. */
  onLoss: () => void;
  logger: Logger;
}): FollowedReports {
  const { connection, maxBytes, check, onReport, logger } = options;
  const watch = watchConnection(connection);
  let isLogged = false;

  function take(data: Uint8Array, subject: string): string | undefined {
    if (data.length > maxBytes) return `must not be larger than ${maxBytes} bytes`;
    const checked = check(parseJson(data));
    return checked.ok ? onReport(checked.value, subject) : checked.problem;
  }

  const stopListening = watch.onLoss(options.onLoss);
  const subscription = connection.subscribe(options.subject, {
    callback: (err, { data, subject }) => {
      const problem = err === null ? take(data, subject) : err.message;
      if (problem === undefined || isLogged) return;
      isLogged = true;
      logger.warn({ subject, problem }, "ignored an invalid report");
    },
  });
  const ticking = setInterval(() => {
    isLogged = false;
    if (watch.isConnected()) options.onTick();
  }, options.tickMs).unref();
  return {
    isConnected: watch.isConnected,
    stop() {
      clearInterval(ticking);
      subscription.unsubscribe();
      stopListening();
    },
  };
}

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
