import type { Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import { nextVersion, type Plans } from "../organizations/organization.ts";
import {
  countOnOtherPlans,
  lockWithOtherLimits,
  updateOrganization,
} from "../organizations/organization-store.ts";
import { appendMessages } from "../outbox/outbox-message.ts";
import type { Lease } from "./lease.ts";

/**
 * Brings plans that were configured anew to the organizations that have them: each one whose entry says
 * other limits gets the next version, through the outbox like any change. Only the leader does so, under
 * its lease: of two processes that were started with different plans, one decides, and one that was
 * stopped and wakes up later undoes nothing. The others write what they were started with when they change
 * an organization, so it is looked at again and again.
 */
export type PlansToApply = {
  sql: Sql;
  lease: Lease;
  plans: Plans;
  now: () => Date;
  newId: () => string;
};

export const applyPlansIntervalMs = 10_000;

/** Takes milliseconds, for which these organizations are locked. */
const batchSize = 200;

/** Answers how many organizations it concerned. */
export async function applyPlans({
  lease,
  plans,
  now,
  newId,
}: Omit<PlansToApply, "sql">): Promise<number> {
  let applied = 0;
  for (;;) {
    const inBatch = await lease.recordAsLeader(async (tx) => {
      const found = await lockWithOtherLimits(tx, plans, batchSize);
      const decisions = found.map(({ organization, projectCount }) =>
        nextVersion(organization, projectCount, { plans, now: now() }),
      );
      await Promise.all(decisions.map(({ organization }) => updateOrganization(tx, organization)));
      const messages = decisions.flatMap((decision) => decision.messages);
      await appendMessages(tx, messages, newId);
      return decisions.length;
    });
    applied += inBatch;
    if (inBatch < batchSize) return applied;
  }
}

/** An organization on a plan that is not configured any more keeps what it had; somebody is to know. */
export async function warnOfOtherPlans(
  { sql, plans }: Pick<PlansToApply, "sql" | "plans">,
  logger: Logger,
): Promise<void> {
  for (const { plan, organizations } of await countOnOtherPlans(sql, Object.keys(plans)))
    logger.warn(
      { plan, organizations },
      "a plan that organizations have is not configured; they keep the limits that they had",
    );
}
