import { z } from "zod";
import { compileCheck } from "./json-schema.ts";

/**
 * Requests of one organization in the current month, counted by usage-metering. Edges follow the bucket of these
 * entries. The limits of the plan are in the snapshot, so that a change of the plan reaches the edges like any other
 * change.
 */
export const QuotaEntry = z.object({
  organization_id: z.uuid(),
  /** A month of UTC, such as `2027-01`. With an entry of an earlier month, the current month has no requests yet. */
  month: z.string().regex(/^\d{4}-(?:0[1-9]|1[0-2])$/),
  requests: z.int().min(0),
});
export type QuotaEntry = z.infer<typeof QuotaEntry>;

export const checkQuotaEntry = compileCheck(QuotaEntry);
