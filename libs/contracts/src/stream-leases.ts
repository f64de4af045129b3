import { z } from "zod";
import { compileCheck } from "./json-schema.ts";

/**
 * Who holds slots for open streams. Every edge that admits streams has a lease of its own, which it
 * renews, and each organization has one entry that says how many slots each lease holds. All entries
 * are written only over the revision that the writer has read, so two edges never give away the same
 * slot.
 */
export const EdgeLease = z.discriminatedUnion("state", [
  /** Each renewal is a new revision; the number is there for people. */
  z.object({ state: z.literal("held"), renewals: z.int().min(0) }),
  /** Given up, or taken away after silence. It never comes back: an edge that goes on takes another. */
  z.object({ state: z.literal("ended") }),
]);
export type EdgeLease = z.infer<typeof EdgeLease>;

export const OrganizationStreams = z.object({
  /** Slots by the id of the lease that holds them; those of ended leases count as free. */
  holders: z.record(z.uuid(), z.int().min(1)),
});
export type OrganizationStreams = z.infer<typeof OrganizationStreams>;

export const checkEdgeLease = compileCheck(EdgeLease);
export const checkOrganizationStreams = compileCheck(OrganizationStreams);

/** Keys in the bucket of leases. */
export const leaseKey = {
  edge: (leaseId: string) => `edge.${leaseId}`,
  organization: (organizationId: string) => `organization.${organizationId}`,
  everyEdge: "edge.*",
  everyOrganization: "organization.*",
};
