import { z } from "zod";

export const changeRequestStatuses = [
  "draft",
  "open",
  "approved",
  "applied",
  "rejected",
  "withdrawn",
  "stale",
] as const;
export const ChangeRequestStatus = z.enum(changeRequestStatuses);
export type ChangeRequestStatus = z.infer<typeof ChangeRequestStatus>;
