import { z } from "zod";
import { compileCheck } from "./json-schema.ts";

/**
 * How much of its month an organization has used, as usage-metering has counted it: one entry for each
 * organization in a bucket that edges follow. What the plan allows stands in the snapshot, so that a
 * plan change reaches the edges as every other change does.
 */
export const QuotaEntry = z.object({
  organization_id: z.uuid(),
  /** A month of UTC, `2027-01`. An entry of an earlier month says that nothing is used yet. */
  month: z.string().regex(/^\d{4}-(?:0[1-9]|1[0-2])$/),
  requests: z.int().min(0),
});
export type QuotaEntry = z.infer<typeof QuotaEntry>;

export const checkQuotaEntry = compileCheck(QuotaEntry);
