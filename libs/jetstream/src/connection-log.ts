import { errors, type NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { failureReason } from "./failures.ts";

/**
 * Logs the state of one connection to NATS, and reports why the last attempt to connect failed. Attempts are at most
 * half a second apart, so the same reason is logged again only after a minute.
 */
type ConnectionLog = {
  failed(error: unknown): void;
  /** Reports the first connection, and follows its state from then on. */
  connected(connection: NatsConnection): void;
};

const repeatAfterMs = 60_000;
const maxReasons = 100;

export function createConnectionLog(options: {
  logger: Logger;
  /** Receives the reason of each failed attempt; undefined when the connection is up. */
  onProblem: (reason: string | undefined) => void;
  monotonicMs: () => number;
}): ConnectionLog {
  const { logger, onProblem, monotonicMs } = options;
  const isRepeated = createRepetitionCheck(monotonicMs);
  let isUp = false;

  function failed(error: unknown): void {
    const reason = failureReason(error);
    onProblem(reason);
    if (isRepeated(reason)) return;
    if (isLoginFailure(error)) logger.error({ reason }, "NATS rejected the login; retrying");
    else logger.warn({ reason }, "NATS cannot be reached; retrying");
  }

  function denied({ operation, subject }: InstanceType<typeof errors.PermissionViolationError>) {
    // The last tokens are often random, such as the name of a consumer.
    const key = `${operation} ${subject.split(".").slice(0, 5).join(".")}`;
    if (!isRepeated(key))
      logger.error({ operation, subject }, "NATS denied an operation: the user lacks the right");
  }

  function reported(error: Error): void {
    const reason = failureReason(error);
    if (!isRepeated(`reported ${reason}`)) logger.warn({ reason }, "NATS reports an error");
  }

  async function follow(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      if (status.type === "disconnect") {
        // Each later failed attempt emits the same status.
        if (isUp) {
          onProblem("the connection was lost");
          logger.warn("NATS is disconnected; reconnecting");
        }
        isUp = false;
      } else if (status.type === "reconnect") {
        up();
        logger.info("NATS is connected again");
      } else if (status.type === "error") {
        if (status.error instanceof errors.PermissionViolationError) denied(status.error);
        else if (isLoginFailure(status.error)) failed(status.error);
        else reported(status.error);
      }
    }
  }

  function up(): void {
    isUp = true;
    onProblem(undefined);
  }

  return {
    failed,
    connected(connection) {
      up();
      void follow(connection);
    },
  };
}

/** Returns a function that returns true for a key of the last minute. */
function createRepetitionCheck(monotonicMs: () => number): (key: string) => boolean {
  const loggedAtMs = new Map<string, number>();
  return (key) => {
    const nowMs = monotonicMs();
    if (nowMs - (loggedAtMs.get(key) ?? Number.NEGATIVE_INFINITY) < repeatAfterMs) return true;
    // There are few reasons. The bound only guards against texts that differ each time.
    if (loggedAtMs.size === maxReasons) loggedAtMs.clear();
    loggedAtMs.set(key, nowMs);
    return false;
  };
}

/** Keeps the reason of the last failed attempt, for `/readyz`. */
export function trackProblem() {
  let problem: string | undefined;
  return {
    problem: () => problem,
    onProblem(reason: string | undefined) {
      problem = reason;
    },
  };
}

function isLoginFailure(error: unknown): boolean {
  return (
    error instanceof errors.AuthorizationError ||
    error instanceof errors.UserAuthenticationExpiredError
  );
}
