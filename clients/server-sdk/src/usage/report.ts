import type { Rejection } from "../connection/rejection.ts";
import type { Counts } from "../rules/rule-set.ts";

/** A body of `POST /api/v1/sdk/usage`. The id is its idempotency key, which stays the same for retries. */
export type Report = { id: string; body: string; endMonotonicMs: number };

type Period = { startMs: number; endMs: number };

/** Maximum size of the flags in a body. The service accepts 64 KiB, and the period takes about 100 bytes of that. */
const maxFlagsBytes = 60_000;

/** Returns the bodies that report counts of a period, each within the size that the service accepts. */
export function reportBodies(
  counts: ReadonlyMap<string, Counts>,
  { startMs, endMs }: Period,
): string[] {
  const period = { start: new Date(startMs).toISOString(), end: new Date(endMs).toISOString() };
  const bodies: string[] = [];
  let members: string[] = [];
  let bytes = 0;

  function finish(): void {
    if (members.length === 0) return;
    bodies.push(`{"period":${JSON.stringify(period)},"flags":{${members.join(",")}}}`);
    members = [];
    bytes = 0;
  }

  for (const [key, { on, off }] of counts) {
    const member = `${JSON.stringify(key)}:{"true":${on},"false":${off}}`;
    const memberBytes = Buffer.byteLength(member) + 1;
    if (bytes + memberBytes > maxFlagsBytes) finish();
    members.push(member);
    bytes += memberBytes;
  }
  finish();
  return bodies;
}

export type UsageOutcome =
  | { kind: "accepted" }
  | { kind: "retry"; retryAfterMs: number }
  /** The service rejects this report. Another one may be accepted. */
  | { kind: "rejected"; status: number }
  /** The service rejects all reports of this client. */
  | { kind: "refused"; status: number };

/** Decides whether a report is sent again. */
export function outcomeOf({ status, isOfKey, retryAfterMs = 0 }: Reply): UsageOutcome {
  if (status >= 200 && status < 300) return { kind: "accepted" };
  if (isOfKey) return { kind: "refused", status };
  // A gateway answers 404 while its routes change. A firewall may answer 403 for a while.
  if (status === 403 || status === 404 || status === 429 || status >= 500)
    return { kind: "retry", retryAfterMs };
  return { kind: "rejected", status };
}

type Reply = Pick<Rejection, "status" | "isOfKey" | "retryAfterMs">;
