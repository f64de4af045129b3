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
 * Counts the open streams of organizations, from the bucket in which edges publish them. A count applies while the
 * entry of its edge is held. An edge writes its own entry before any count.
 */
export type OpenStreams = {
  heldBy(organizationId: string): number;
  entries: { begin(): void; take(entry: Pick<BucketEntry, "key" | "payload">): void; end(): void };
};

export function createOpenStreams(): OpenStreams {
  const nothing = () => ({
    edges: new Set<string>(),
    organizations: new Map<string, OrganizationStreams["holders"]>(),
  });
  let read = nothing();
  /** The content that is shown. While the bucket is read again, it is the previous content. */
  let shown = read;
  return {
    heldBy(organizationId) {
      const holders = Object.entries(shown.organizations.get(organizationId) ?? {});
      return holders.reduce((sum, [edge, count]) => sum + (shown.edges.has(edge) ? count : 0), 0);
    },
    entries: {
      begin() {
        read = nothing();
      },
      take({ key, payload }) {
        const [, id = ""] = key.split(".");
        const value = parseJson(payload);
        if (key === leaseKey.edge(id)) {
          const lease = checkEdgeLease(value);
          if (lease.ok && lease.value.state === "held") read.edges.add(id);
          else read.edges.delete(id);
        } else if (key === leaseKey.organization(id)) {
          const streams = checkOrganizationStreams(value);
          if (streams.ok) read.organizations.set(id, streams.value.holders);
          else read.organizations.delete(id);
        }
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
  const follower = { onBegin: begin, onEntry: take, onCaughtUp: end };
  return followBucket({ ...options, ...follower, bucket: leasesBucket, filter: ">" });
}
