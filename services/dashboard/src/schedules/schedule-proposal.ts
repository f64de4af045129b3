import type { Proposal } from "../proposals/proposal.ts";
import { type Place, switchProposal } from "../proposals/state-proposal.ts";
import type { Times } from "./schedule-text.ts";

/** Returns whether the flag would turn on and off. The second change would find another state than was approved. */
export const hasTwoTimes = ({ enableAt, disableAt }: Times): boolean =>
  enableAt !== null && disableAt !== null;

export const oneTimeOnly =
  "This environment is protected, and a change request has one time. Enter one time, and request the other change after that.";

/** Proposes to turn a flag on or off at a time. */
export function scheduleProposal(place: Place, { enableAt, disableAt }: Times): Proposal {
  const at = enableAt ?? disableAt;
  const enabled = enableAt !== null;
  return switchProposal(place, { enabled, ...(at !== null && { applyAt: at.toISOString() }) });
}
