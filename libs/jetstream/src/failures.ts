import { JetStreamApiError } from "@nats-io/jetstream";
import {
  ClosedConnectionError,
  ConnectionError,
  DrainingConnectionError,
  RequestError,
  TimeoutError,
} from "@nats-io/transport-node";

/** Errors of the client library when it cannot send a request to the broker, or receives no response. */
const unavailableErrors = [
  ClosedConnectionError,
  ConnectionError,
  DrainingConnectionError,
  RequestError,
  TimeoutError,
];

/** Returns the name and code of an error, for logs and dead letters. Its message could contain values. */
export function failureName(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const code = "code" in error ? String(error.code) : "";
  return [error.name, code].filter((part) => /^[\w$.:-]{1,63}$/.test(part)).join(" ");
}

/** Lowest status of errors of the broker itself, as in HTTP. */
const firstServerStatus = 500;

/**
 * Returns whether an operation may succeed later, because NATS is unavailable or short of resources. It also checks the
 * cause, because the library wraps some errors, such as a request without responders.
 */
export function isBrokerUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof JetStreamApiError) return error.status >= firstServerStatus;
  return (
    unavailableErrors.some((kind) => error instanceof kind) || isBrokerUnavailable(error.cause)
  );
}

/**
 * Returns the reason of an error of NATS, for logs and `/readyz`: names and codes, because texts of a server or a proxy
 * could contain values.
 */
export function failureReason(error: unknown): string {
  if (!(error instanceof Error)) return failureName(error);
  if ("hasSafeMessage" in error && error.hasSafeMessage === true) return error.message;
  const name = failureName(error);
  return error.cause instanceof Error ? `${name} (${failureName(error.cause)})` : name;
}
