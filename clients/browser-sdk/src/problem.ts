import type { Outcome } from "./next-step.ts";

/**
 * - `options`, `unauthorized`: the client has stopped and keeps its values.
 * - `unavailable`, `rejected`, `limited`: an error response. The client retries.
 * - `streams_held_back`: a proxy collects responses. The client polls.
 * - `context`: the context has invalid attributes, which are ignored.
 * - `unknown_flag`: the environment has no such flag. The caller's fallback applies.
 * - `type_mismatch`: a flag is read as another type than its own, or an initial value has no variation. The caller's
 *   fallback applies.
 * - `storage`: the values cannot be stored. Without them, the next page starts without values.
 * - `listener`: a listener of the application has thrown or rejected.
 */
export type ProblemKind =
  | "options"
  | "unauthorized"
  | "unavailable"
  | "rejected"
  | "limited"
  | "streams_held_back"
  | "context"
  | "unknown_flag"
  | "type_mismatch"
  | "storage"
  | "listener";

/** A problem of the client. It is passed to listeners and never thrown. */
export class HalyardError extends Error {
  // `declare` emits nothing, because the constructor sets all fields.
  declare readonly kind: ProblemKind;
  /** True if the client has stopped for good. It keeps answering with the values that it has. */
  declare readonly isFatal: boolean;
  /** Status of the error response; 0 without a valid response. */
  declare readonly status: number | undefined;

  constructor(kind: ProblemKind, message: string, status?: number) {
    super(message);
    this.kind = kind;
    this.isFatal = kind === "options" || kind === "unauthorized";
    this.status = status;
  }
}

export type Logger = Pick<Console, "warn" | "error">;

export type ProblemLog = (problem: HalyardError) => void;

/** Returns a function that logs the first problem of each kind, and the first mismatch of each flag. */
export function createProblemLog(logger: Logger): ProblemLog {
  const logged = new Set<string>();
  return ({ kind, message, isFatal }) => {
    const subject = kind === "type_mismatch" ? message : kind;
    if (logged.has(subject)) return;
    logged.add(subject);
    try {
      logger[isFatal ? "error" : "warn"]?.(`Halyard: ${message}`);
    } catch {
      // The application's logger failed. There is no other place to report to.
    }
  };
}

export function flagProblem(kind: ProblemKind, what: string): HalyardError {
  return new HalyardError(kind, `${what}; the fallback applies.`);
}

/** Returns the problem of an attempt to reach the edge; undefined for a success. */
export function problemOf(outcome: Outcome, baseUrl: string): HalyardError | undefined {
  if (outcome.kind === "held_back")
    return new HalyardError(
      "streams_held_back",
      "No event from the stream; polling. Check proxies.",
    );
  if (outcome.kind !== "failed") return undefined;
  const { status } = outcome;
  const kind = kindOf(status);
  const next = kind === "unauthorized" ? "stopped. Check the client key." : "retrying.";
  const what = status === 0 ? "No valid response" : `Status ${status}`;
  return new HalyardError(kind, `${what} from ${baseUrl}; ${next}`, status);
}

function kindOf(status: number): ProblemKind {
  if (status === 401 || status === 403) return "unauthorized";
  if (status === 429) return "limited";
  return status >= 500 || status === 0 ? "unavailable" : "rejected";
}
