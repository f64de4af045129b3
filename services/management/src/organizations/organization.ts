import type { PlanLimits } from "@halyard/contracts";

/** A customer: its plan, and with it what it may use. */
export type Organization = {
  id: string;
  name: string;
  plan: string;
  /** What its entry said last of what it may use; null when that was never recorded. */
  limits: PlanLimits | null;
  /** Raised by every change to the organization or to the number of its projects. */
  version: number;
  createdAt: Date;
  updatedAt: Date;
};
