import type { ScheduleDue } from "@halyard/contracts";
import { json, type Transaction } from "@halyard/postgres";
import type { Outcome } from "./outcome.ts";

/**
 * How long outcomes are kept. Until then a copy of a message is answered with its outcome and does
 * nothing; one that turns up later would take effect. So it is well beyond the 30 days after which the
 * messages that were set aside, which somebody might put back by hand, are gone.
 */
export const inboxLifetimeDays = 90;

/** What is known of a due change before anything is done about it. */
export type Standing = {
  /** What became of it already; null when it is new. */
  outcome: Outcome | null;
  /** Whether organization, project and user are what the message says, and belong together. */
  isOfOrganization: boolean;
};

export async function readStanding(tx: Transaction, due: ScheduleDue): Promise<Standing> {
  const [standing] = await tx<[Standing]>`
    select
      (select inbox.outcome from inbox where inbox.message_id = ${due.id}) as outcome,
      exists (
        select
        from projects as project
        join users as member on member.organization_id = project.organization_id
        where project.id = ${due.project_id}
          and project.organization_id = ${due.organization_id}
          and member.id = ${due.user_id}
      ) as "isOfOrganization"`;
  return standing;
}

/**
 * False when the message has an outcome already. While another transaction is about to record one, this
 * waits until that has committed, or is gone.
 */
export async function recordOutcome(
  tx: Transaction,
  messageId: string,
  outcome: Outcome,
): Promise<boolean> {
  const inserted = await tx`
    insert into inbox (message_id, outcome, processed_at)
    values (${messageId}, ${json(outcome)}, clock_timestamp())
    on conflict (message_id) do nothing`;
  return inserted.count > 0;
}
