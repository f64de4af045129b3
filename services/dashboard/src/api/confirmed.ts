import type { ErrorBody } from "./schema.d.ts";

/** Asks the person to confirm the sign-in. Returns whether the sign-in is confirmed. */
export type Confirm = () => Promise<boolean>;

/** Time after which a request without a response counts as lost. The gateway answers within 40 s at the latest. */
const timeoutMs = 45_000;

/** Pauses before the repetitions. Every process learns of a confirmation within a second. */
const pausesMs = [0, 300, 1_000] as const;

/**
 * Sends a request. If the sign-in is too old for it, asks for a confirmation, and then sends the same request again, with
 * the same `Idempotency-Key`. The pages that send requests need not know about confirmations.
 */
export async function sendConfirmed(request: Request, confirm?: Confirm): Promise<Response> {
  if (confirm === undefined) return send(request);
  let response = await send(request.clone());
  if (!(await needsConfirmation(response)) || !(await confirm())) return response;
  for (const pauseMs of pausesMs) {
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    response = await send(request.clone());
    if (!(await needsConfirmation(response))) return response;
  }
  return response;
}

/** The time limit begins with each attempt, because the confirmation in between takes as long as the person. */
const send = (request: Request) =>
  fetch(request, { signal: AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]) });

async function needsConfirmation(response: Response): Promise<boolean> {
  if (response.status !== 403) return false;
  const read = response.clone().json() as Promise<ErrorBody | undefined>;
  const body = await read.catch(() => undefined);
  return body?.error.code === "AUTH_003";
}
