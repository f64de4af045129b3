import type { ErrorBody } from "./schema.d.ts";

export class ApiProblem extends Error {
  readonly status: number;
  /** The code of the API's error table, such as `CONFLICT_003`. */
  readonly code: string;
  readonly requestId: string | null;
  /** Time after which a retry helps, in seconds. Null if the response names none. */
  readonly retryAfter: number | null;
  /** The path of the resource in the response, such as the draft that the API made of a rejected change. */
  readonly location: string | null;

  constructor(
    message: string,
    facts: Pick<ApiProblem, "status" | "code" | "requestId" | "retryAfter"> &
      Partial<Pick<ApiProblem, "location">>,
  ) {
    super(message);
    this.name = "ApiProblem";
    this.status = facts.status;
    this.code = facts.code;
    this.requestId = facts.requestId;
    this.retryAfter = facts.retryAfter;
    this.location = facts.location ?? null;
  }

  static from(body: unknown, response: Response): ApiProblem {
    const { message, code } =
      (body as { error?: Partial<ErrorBody["error"]> } | undefined)?.error ?? {};
    const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN);
    return new ApiProblem(message ?? `The server answered ${response.status}.`, {
      status: response.status,
      code: code ?? "",
      requestId: response.headers.get("x-request-id"),
      location: response.headers.get("location"),
      retryAfter: Number.isFinite(retryAfter) ? retryAfter : null,
    });
  }
}

/** A request got no response: the network or the server is unavailable. */
export class ConnectionLost extends Error {
  constructor(options?: ErrorOptions) {
    super("Halyard cannot be reached.", options);
    this.name = "ConnectionLost";
  }
}

/** A message of the API about one field of a request. */
type FieldMessage = { path: readonly string[]; text: string };

/**
 * Returns the field that a rejected request names. The message begins with the JSON pointer of the field:
 * "/targeting_rules/0/name is too long".
 */
export function fieldMessageOf(error: unknown): FieldMessage | undefined {
  if (!(error instanceof ApiProblem) || error.status !== 400) return undefined;
  const { pointer, text } = /^\/(?<pointer>\S+) (?<text>.+)$/s.exec(error.message)?.groups ?? {};
  if (pointer === undefined || text === undefined) return undefined;
  return { path: pointer.split("/"), text };
}

/** Returns the id of the draft that the API made of a change of a protected environment. */
export function draftIn(error: unknown): string | undefined {
  if (!(error instanceof ApiProblem) || error.code !== "APPROVAL_001") return undefined;
  return error.location?.split("/").at(-1);
}

/** Returns whether a change failed because the resource has a newer version. */
export function isEditConflict(error: unknown): boolean {
  return error instanceof ApiProblem && error.status === 412;
}

/** Returns whether a rate limit rejected a request. A limit of the plan is also 429, but waiting does not help. */
export function isRateLimited(error: unknown): error is ApiProblem & { retryAfter: number } {
  return error instanceof ApiProblem && error.status === 429 && error.retryAfter !== null;
}

/** Returns whether a repeated request can succeed without a change of its content. */
export function isTemporary(error: unknown): boolean {
  if (error instanceof ConnectionLost || isRateLimited(error)) return true;
  return error instanceof ApiProblem && error.status === 503;
}

/** Returns whether a request may have succeeded although its response is missing or an error of the server. */
export function isUnconfirmed(error: unknown): boolean {
  return error instanceof ConnectionLost || (error instanceof ApiProblem && error.status >= 500);
}

/** An error of the page itself, with what a person can do about it. */
export class AdvisedError extends Error {
  readonly advice: string;
  constructor(message: string, advice: string) {
    super(message);
    this.advice = advice;
  }
}

const adviceByStatus: Readonly<Record<number, string>> = {
  401: "Sign in again, or with another key.",
  403: "Ask an owner or an admin of your organization for the role, or use a key that has it.",
  404: "It may have been deleted. Go back to the list.",
  409: "Choose another name, or change what exists.",
  412: "Someone else changed it first. Compare both versions, then save again.",
  429: "A limit of the plan is reached. The usage page shows it.",
};

/** Says what a person can do about an error. */
export function adviceFor(error: unknown): string {
  if (error instanceof ConnectionLost) return "Check your connection, then try again.";
  if (error instanceof AdvisedError) return error.advice;
  if (!(error instanceof ApiProblem)) return "Reload the page. If it happens again, report it.";
  if (error.retryAfter !== null) return `Try again in ${error.retryAfter} s.`;
  if (error.code === "AUTH_003") return "Try again, and confirm that it is you.";
  if (error.code === "APPROVAL_001")
    return error.location === null
      ? "Open a change request, which other people approve."
      : "Open the draft: its page requests the change.";
  if (error.code === "CONFLICT_002")
    return "The flag has no earlier state any more. Reload the page to see its history.";
  if (error.status >= 500)
    return `Try again. If it happens again, report the request id ${error.requestId ?? "of the response"}.`;
  return adviceByStatus[error.status] ?? "Correct the input, then try again.";
}
