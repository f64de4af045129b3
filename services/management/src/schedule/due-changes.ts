import type { ScheduleDue, ScheduleResolved } from "@halyard/contracts";
import type { Verdict } from "@halyard/jetstream";
import { json, type Transaction } from "@halyard/postgres";
import { createProblem, isProblem } from "@halyard/service";
import { readContext } from "../access/change-context.ts";
import { changeFlag } from "../flags/flag-changes.ts";
import type { Write, Writer } from "../outbox/write.ts";

/**
 * The use cases of a change that has come due. Messages come at least once, and the same one may be in
 * the hands of two processes when the first of them was stopped for a while; the change is made once
 * all the same, because its outcome is recorded under the message's id in the transaction of the change.
 * Whoever comes second waits at the flag's lock or at that id, and is rolled back to find the outcome of
 * the first.
 */
export type DueChanges = {
  /** Makes the change unless that was done before. Answers the outcome either way. */
  apply(due: ScheduleDue): Promise<Outcome>;
  /**
   * Records that the change cannot be made, so that no later copy of the message makes it. Answers
   * another outcome if there was one.
   */
  giveUp(due: ScheduleDue, reason: string): Promise<Outcome>;
};

export function createDueChanges(options: {
  writer: Writer;
  now: () => Date;
  newId: () => string;
}): DueChanges {
  const { writer, now, newId } = options;

  async function once(
    due: ScheduleDue,
    decide: (write: Write, status: ChangeStatus) => Promise<Outcome>,
  ): Promise<Outcome> {
    const result = await writer(async (write) => {
      const status = await readStatus(write.tx, due);
      if (status.outcome !== null) return status.outcome;
      const outcome = await decide(write, status);
      if (await recordOutcome(write.tx, due.id, outcome)) return outcome;
      return createProblem("CONFLICT_001", "Another process was faster with this message.");
    });
    // The other's outcome is there to be read now.
    return isProblem(result) ? once(due, decide) : result;
  }

  async function change(write: Write, due: ScheduleDue): Promise<Outcome> {
    const clock = { now, newId };
    const author = { userId: due.user_id, apiKeyId: null };
    const context = () => readContext(write.tx, { author, cause: "scheduled" }, clock);
    const { project_id: projectId, flag_id: flagId, environment_id: environmentId } = due;
    const done = await changeFlag(
      { ...write, ...clock, context },
      { scope: { projectId, flagId, environmentId } },
      { enabled: due.action === "enable" },
    );
    if (isProblem(done)) return cancelled("The flag or the environment is gone.");
    return applied(done.changed ? done.state.updatedAt : now());
  }

  return {
    apply: (due) =>
      once(due, async (write, { isOfOrganization }) =>
        isOfOrganization
          ? change(write, due)
          : failed("There is no such user or project in this organization."),
      ),
    giveUp: (due, reason) => once(due, async () => failed(reason)),
  };
}

/** What became of a change that had come due, as it is kept and as the scheduler is told. */
export type Outcome = Omit<ScheduleResolved, "id" | "schedule_id">;

export const applied = (at: Date): Outcome => ({
  outcome: "applied",
  applied_at: at.toISOString(),
  reason: null,
});

export const cancelled = (reason: string): Outcome => ({
  outcome: "cancelled",
  applied_at: null,
  reason,
});

export const failed = (reason: string): Outcome => ({
  outcome: "failed",
  applied_at: null,
  reason,
});

export function resolvedMessage(due: ScheduleDue, outcome: Outcome): ScheduleResolved {
  return { id: due.id, schedule_id: due.schedule_id, ...outcome };
}

/** What failed is for somebody to look at. */
export function verdictOf({ outcome, reason }: Outcome): Verdict {
  return outcome === "failed" ? { deadLetter: reason ?? outcome } : "done";
}

/**
 * How long outcomes are kept. Until then a copy of a message is answered with its outcome and does
 * nothing; one that turns up later would take effect. So it is well beyond the 30 days after which the
 * messages that were set aside, which somebody might put back by hand, are gone.
 */
export const inboxLifetimeDays = 90;

/** What is known of a due change before anything is done about it. */
type ChangeStatus = {
  /** What became of it already; null when it is new. */
  outcome: Outcome | null;
  /** Whether organization, project and user are what the message says, and belong together. */
  isOfOrganization: boolean;
};

async function readStatus(tx: Transaction, due: ScheduleDue): Promise<ChangeStatus> {
  const [status] = await tx<[ChangeStatus]>`
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
  return status;
}

/**
 * False when the message has an outcome already. While another transaction is about to record one, this
 * waits until that has committed, or is gone.
 */
async function recordOutcome(
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
