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
