import { knownNeeds } from "@halyard/evaluation";
import type { Rejection } from "../connection/rejection.ts";
import type { Counts } from "../rules/counts.ts";
import { packageName, version } from "../version.ts";

/** A body of `POST /api/v1/sdk/usage`. The id is its idempotency key, which stays the same for retries. */
export type Report = { id: string; body: string; endMonotonicMs: number };

type Period = { startMs: number; endMs: number };

/** Maximum size of the flags in a body. The service accepts 64 KiB, and the period and the SDK take about 300 bytes of that. */
const maxFlagsBytes = 60_000;

/** Names the SDK and the features of flags that it knows, so that an administrator sees what a state can use. */
const sdk = JSON.stringify({ name: packageName, version, knows: knownNeeds });

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
    const flags = members.join(",");
    bodies.push(`{"sdk":${sdk},"period":${JSON.stringify(period)},"flags":{${flags}}}`);
    members = [];
    bytes = 0;
  }

  for (const [key, counted] of counts) {
    const member = `${JSON.stringify(key)}:${JSON.stringify(membersOf(counted))}`;
    const memberBytes = Buffer.byteLength(member) + 1;
    if (bytes + memberBytes > maxFlagsBytes) finish();
    members.push(member);
    bytes += memberBytes;
  }
  finish();
  return bodies;
}

/** Evaluations of a typed flag without a variation count as false. */
function membersOf({ on, off, variations }: Counts): object {
  if (variations === undefined) return { true: on, false: off };
  // Flags of both types can have had the same key.
  return {
    ...(on > 0 && { true: on }),
    ...(off > 0 && { false: off }),
    variations: Object.fromEntries(variations),
  };
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
