import { z } from "zod";

/** Ways of changing a protected environment that need no approved change request. */
export const exceptions = ["off", "rollback"] as const;

/** The protection of an environment: changes of what it answers need an approved change request. */
export const Protection = z.strictObject({
  approvals: z
    .int()
    .min(1)
    .max(3)
    .describe("Number of approvers of this environment who must approve"),
  self_approval: z
    .boolean()
    .describe("Whether the people who contributed to a request may approve it"),
  without_approval: z
    .array(z.enum(exceptions))
    .max(exceptions.length)
    .describe(
      "`off`: turning one flag off. `rollback`: returning to a state that was approved, or that stood when the protection began; it never turns a flag on",
    ),
});
export type Protection = z.infer<typeof Protection>;

/** Returns a protection in words. */
export function describeProtection(protection: Protection | null): string {
  if (protection === null) return "none";
  const { approvals, self_approval, without_approval } = protection;
  const parts = [approvals === 1 ? "1 approval" : `${approvals} approvals`];
  if (self_approval) parts.push("also by its author");
  if (without_approval.length > 0) parts.push(`none for ${without_approval.join(" and ")}`);
  return parts.join(", ");
}

/** The protection in a request. */
export const ProtectionInput = z.strictObject({
  approvals: Protection.shape.approvals,
  self_approval: Protection.shape.self_approval.optional().describe("False by default"),
  without_approval: Protection.shape.without_approval.optional().describe("Empty by default"),
});
export type ProtectionInput = z.infer<typeof ProtectionInput>;
