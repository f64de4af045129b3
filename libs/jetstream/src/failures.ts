import { JetStreamApiError } from "@nats-io/jetstream";
import {
  ClosedConnectionError,
  ConnectionError,
  DrainingConnectionError,
  RequestError,
  TimeoutError,
} from "@nats-io/transport-node";

/** What the client library throws when the broker cannot be asked, or does not answer. */
const awayErrors = [
  ClosedConnectionError,
  ConnectionError,
  DrainingConnectionError,
  RequestError,
  TimeoutError,
];

/** Returns name and code of an error for logs and dead letters. The message of an error can contain values. */
export function failureName(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const code = "code" in error ? String(error.code) : "";
  return [error.name, code].filter((part) => /^[\w$.:-]{1,63}$/.test(part)).join(" ");
}

/** From here on a status of the broker's answers blames the broker itself, as in HTTP. */
const firstServerStatus = 500;

/**
 * Whether the same may succeed later, because NATS is away or short of something. The library wraps
 * what it met: when nobody answers for a stream, the error that says so is the cause of another.
 */
export function isBrokerAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof JetStreamApiError) return error.status >= firstServerStatus;
  return awayErrors.some((kind) => error instanceof kind) || isBrokerAway(error.cause);
}
