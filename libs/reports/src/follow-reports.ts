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
