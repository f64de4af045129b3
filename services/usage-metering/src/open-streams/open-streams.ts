import {
  checkEdgeLease,
  checkOrganizationStreams,
  leaseKey,
  leasesBucket,
  type OrganizationStreams,
} from "@halyard/contracts";
import { type BucketEntry, type FollowedStream, followBucket, parseJson } from "@halyard/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";

/**
 * How many slots for streams organizations hold, read along in the bucket in which edges share them out.
 * A slot counts while the lease of its holder stands: an edge takes its lease before any slot, and an
 * entry that is not there any more belonged to one that has ended.
 */
export type OpenStreams = {
  heldBy(organizationId: string): number;
  entries: { begin(): void; take(entry: Pick<BucketEntry, "key" | "payload">): void; end(): void };
};

type Known = { leases: Set<string>; organizations: Map<string, OrganizationStreams["holders"]> };

const leasePrefix = leaseKey.edge("");
const organizationPrefix = leaseKey.organization("");

export function createOpenStreams(): OpenStreams {
  let read = nothing();
  /** While everything is read anew, what was known before goes on being answered. */
  let shown = read;

  function takeLease(leaseId: string, payload: Uint8Array): void {
    const checked = checkEdgeLease(parseJson(payload));
    if (checked.ok && checked.value.state === "held") read.leases.add(leaseId);
    else read.leases.delete(leaseId);
  }

  function takeOrganization(organizationId: string, payload: Uint8Array): void {
    const checked = checkOrganizationStreams(parseJson(payload));
    if (checked.ok) read.organizations.set(organizationId, checked.value.holders);
    else read.organizations.delete(organizationId);
  }

  return {
    heldBy(organizationId) {
      const holders = shown.organizations.get(organizationId) ?? {};
      return Object.entries(holders).reduce(
        (sum, [leaseId, slots]) => (shown.leases.has(leaseId) ? sum + slots : sum),
        0,
      );
    },
    entries: {
      begin() {
        read = nothing();
      },
      take({ key, payload }) {
        if (key.startsWith(leasePrefix)) takeLease(key.slice(leasePrefix.length), payload);
        else if (key.startsWith(organizationPrefix))
          takeOrganization(key.slice(organizationPrefix.length), payload);
      },
      end() {
        shown = read;
      },
    },
  };
}

export function followOpenStreams(options: {
  connection: NatsConnection;
  streams: OpenStreams;
  logger: Logger;
}): FollowedStream {
  const { begin, take, end } = options.streams.entries;
  return followBucket({
    connection: options.connection,
    bucket: leasesBucket,
    filter: ">",
    onBegin: begin,
    onEntry: take,
    onCaughtUp: end,
    logger: options.logger,
  });
}

function nothing(): Known {
  return { leases: new Set(), organizations: new Map() };
}
