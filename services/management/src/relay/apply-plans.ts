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
 * Applies changed plan limits to organizations. Each organization whose recorded limits differ from those of its plan
 * gets the next version, published through the outbox like any change.
 *
 * Only the leader does this, under its lease. So if processes are started with different plans, those of the leader
 * apply, and a suspended former leader cannot undo them. Other replicas still write their own limits when they change
 * an organization, so the leader repeats the comparison.
 */
export type PlansToApply = {
  sql: Sql;
  lease: Lease;
  plans: Plans;
  now: () => Date;
  newId: () => string;
};

export const applyPlansIntervalMs = 10_000;

/** Maximum number of organizations per batch. They are locked for a few milliseconds. */
const batchSize = 200;

/** Applies the plans in batches. Returns the number of changed organizations. */
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

/** Warns about organizations whose plan is not configured. They keep their recorded limits. */
export async function warnOfOtherPlans(
  { sql, plans }: Pick<PlansToApply, "sql" | "plans">,
  logger: Logger,
): Promise<void> {
  for (const { plan, organizations } of await countOnOtherPlans(sql, Object.keys(plans)))
    logger.warn(
      { plan, organizations },
      "organizations have a plan that is not configured; they keep their recorded limits",
    );
}
