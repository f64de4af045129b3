import type { EventName } from "@halyard/contracts";
import type { Webhook } from "../webhooks/webhook.ts";
import type { Delivering } from "./decide-after-attempt.ts";

/** A delivery that this process is to make an attempt at, with all that the attempt needs. */
export type ClaimedDelivery = Delivering & {
  id: string;
  event: EventName;
  payload: string;
  /** How long it has waited for its first attempt; null when this is a later one. */
  waitedMs: number | null;
  webhook: Pick<Webhook, "id" | "organizationId" | "url" | "secret" | "previousSecret">;
  /** The id under which it was claimed. Whoever claims it later does so under another one. */
  claim: string;
  /** A moment before it was claimed, by the process's clock that never goes back. */
  claimedAtMs: number;
};

/** What a process has in hand: it makes the attempt, or has yet to record it. */
export type HeldClaim = Pick<ClaimedDelivery, "id" | "claim">;

export type ClaimTimes = {
  /**
   * How long a claim holds. An attempt that begins in its first half ends in it: 30 s, and what recording
   * takes.
   */
  lastsMs: number;
  /** How often a process looks for claims that have run out. */
  lookEveryMs: number;
};

export const defaultClaimTimes: ClaimTimes = { lastsMs: 60_000, lookEveryMs: 1_000 };
/**
 * A process that was stopped between claiming and sending leaves the delivery alone when it goes on after
 * this time: somebody else is going to claim it.
 */
export const latestStartMs = 25_000;
