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
 * Texts of errors without values: those that nats-server sends with `-ERR` or when it ends a consumer, and those of the
 * client. Any other text from a server or a proxy could contain a value.
 */
const knownTexts = [
  "Authorization Violation",
  "Authentication Timeout",
  "Authentication Expired",
  "User Authentication Expired",
  "User Authentication Revoked",
  "Account Authentication Expired",
  "maximum connections exceeded",
  "maximum account active connections exceeded",
  "maximum subscriptions exceeded",
  "Connection throttling is active. Please try again later.",
  "Maximum Payload Violation",
  "Maximum Payload Exceeded",
  "Maximum Control Line Exceeded",
  "Slow Consumer",
  "Stale Connection",
  "Server Shutdown",
  "Secure Connection - TLS Required",
  "Unknown Protocol Operation",
  "Parser Error",
  "Invalid Client Protocol",
  "Invalid Subject",
  "Invalid Publish Subject",
  "attempted to connect to route port",
  "attempted to connect to leaf node port",
  "attempted to connect to wrong port",
  "message headers not supported",
  "Consumer Deleted",
  "Stream Deleted",
  "Leadership Change",
  "connection refused",
  "closed connection",
  "timeout",
  "unexpected response from server",
  "server does not support 'tls'",
];
const knownByLowerCase = new Map(knownTexts.map((text) => [text.toLowerCase(), text]));

export function knownText(text: string): string | undefined {
  return knownByLowerCase.get(text.toLowerCase());
}

/** Returns the reason of an error of NATS, for logs and `/readyz`: a known text, or names and codes. */
export function failureReason(error: unknown): string {
  if (!(error instanceof Error)) return failureName(error);
  if ("hasSafeMessage" in error && error.hasSafeMessage === true) return error.message;
  const text = knownText(error.message);
  if (text !== undefined) return text;
  const name = failureName(error);
  return error.cause instanceof Error ? `${name} (${failureName(error.cause)})` : name;
}
