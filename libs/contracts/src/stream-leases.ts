import { z } from "zod";
import { compileCheck } from "./json-schema.ts";

/**
 * Open streams by organization and edge. Every edge renews its own entry, which shows that it is alive. Each
 * organization has one entry with the number of streams on each edge. Every write names the revision that it replaces,
 * so that two edges never fill the same slot.
 */
export const EdgeLease = z.discriminatedUnion("state", [
  /** Renewals since the edge wrote its entry into this bucket. They are at least two seconds apart. */
  z.object({ state: z.literal("held"), renewals: z.int().min(0) }),
  /**
   * The edge stopped, or another edge ended the entry because it was not renewed. If the edge is alive, it renews the
   * entry.
   */
  z.object({ state: z.literal("ended") }),
]);
export type EdgeLease = z.infer<typeof EdgeLease>;

export const OrganizationStreams = z.object({
  /** Streams by edge id; those of edges whose entry was ended do not count. */
  holders: z.record(z.uuid(), z.int().min(1)),
});
export type OrganizationStreams = z.infer<typeof OrganizationStreams>;

export const checkEdgeLease = compileCheck(EdgeLease);
export const checkOrganizationStreams = compileCheck(OrganizationStreams);

/** Keys in the bucket of leases. */
export const leaseKey = {
  /**
   * Management writes this key in a new installation. A bucket without it may have replaced a lost one; edges then
   * have to publish their counts again.
   */
  established: "established",
  edge: (leaseId: string) => `edge.${leaseId}`,
  organization: (organizationId: string) => `organization.${organizationId}`,
  everyEdge: "edge.*",
  everyOrganization: "organization.*",
};
