import { HalyardError } from "../halyard-error.ts";
import type { PollResult } from "./fetch-rules.ts";
import type { StreamEnd } from "./read-stream.ts";
import type { Rejection } from "./rejection.ts";

/** Returns the error that the application receives for a failed attempt; undefined for outcomes that are no failure. */
export function describeFailure(
  outcome: StreamEnd | PollResult,
  baseUrl: string,
): HalyardError | undefined {
  switch (outcome.kind) {
    case "rejected":
      return describeRejection(outcome);
    case "unreachable":
      return new HalyardError(
        "unreachable",
        `No connection to ${baseUrl}${reasonOf(outcome.cause)}. The client retries.`,
        { cause: outcome.cause },
      );
    case "timed_out":
      return new HalyardError(
        "unreachable",
        `No complete response from ${baseUrl} within ${outcome.timeoutMs / 1_000} s. The client retries.`,
      );
    case "silent":
      return new HalyardError(
        "no_events",
        outcome.hasResponse
          ? `The stream of ${baseUrl} opened, but no rules arrived in time. The client polls.`
          : `No response from ${baseUrl} to the request for a stream. The client polls.`,
      );
    case "stalled":
      return new HalyardError(
        "no_events",
        `The stream of ${baseUrl} sent nothing for ${outcome.silenceMs / 1_000} s. The client connects again.`,
      );
    case "not_a_stream":
      return new HalyardError(
        "unexpected_response",
        "The response is not an event stream. Check `baseUrl`. The client retries.",
      );
    case "invalid_data":
      return new HalyardError(
        "invalid_data",
        `A rule set cannot be read: ${outcome.problem}. The client keeps its flags and retries.`,
      );
    case "rules":
    case "unchanged":
    case "closed":
    case "ended_by_client":
      return undefined;
  }
}

/**
 * Returns the reason of a failed request, with its error code and address as Node.js reports them, such as
 * `: connect ECONNREFUSED 127.0.0.1:8080`. The reason is the innermost error that has a code; `fetch` wraps it.
 */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return "";
  const inner = reasonOf(cause.cause);
  if (inner !== "") return inner;
  // One error for each address that the name has.
  if (cause instanceof AggregateError) return reasonOf(cause.errors[0]);
  const { code, message } = cause as NodeJS.ErrnoException;
  if (typeof code !== "string") return "";
  return message.includes(code) ? `: ${message}` : `: ${message} (${code})`;
}

function describeRejection({ status, isOfKey }: Rejection): HalyardError {
  if (status === 401)
    return new HalyardError(
      "unauthorized",
      "401: the key is unknown, expired or revoked. The client has stopped; create it again with a valid key.",
      { fatal: true },
    );
  if (status === 403 && isOfKey)
    return new HalyardError(
      "forbidden",
      "403: the key may not read rule sets. The client has stopped; create it again with a reader key.",
      { fatal: true },
    );
  if (status === 403)
    return new HalyardError(
      "unexpected_response",
      "403 from a proxy or a firewall. Allow requests to `baseUrl`. The client retries.",
    );
  if (status === 429)
    return new HalyardError(
      "limited",
      "429: a limit is reached. The client polls and retries later.",
    );
  if (status >= 500)
    return new HalyardError(
      "unavailable",
      `${status}: the service is unavailable. The client retries.`,
    );
  return new HalyardError(
    "unexpected_response",
    `Unexpected status ${status}. Check \`baseUrl\`. The client retries.`,
  );
}
