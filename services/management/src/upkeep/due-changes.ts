import type { ScheduleDue, ScheduleResolved } from "@halyard/contracts";
import { createProblem, isProblem } from "@halyard/http";
import type { Verdict } from "@halyard/jetstream";
import { json, type Transaction } from "@halyard/postgres";
import { readContext } from "../access/change-context.ts";
import { changeFlag } from "../flags/flag-changes.ts";
import type { Write, Writer } from "../outbox/write.ts";
import { isApprovalNeeded } from "../protection/protection.ts";

/**
 * The use cases of due scheduled changes. A message is delivered at least once, and two processes can handle the same
 * message if the first one was suspended. The change is still made only once, because its transaction records the
 * outcome under the id of the message. The second process waits for the lock of the flag or for that id. Its
 * transaction rolls back, and it reads the outcome of the first one.
 */
type DueChanges = {
  /** Makes the change unless it has an outcome. Returns the outcome. */
  apply(due: ScheduleDue): Promise<Outcome>;
  /**
   * Records that the change failed, so that no later copy of the message makes it. Returns the existing outcome if
   * there is one.
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
      return createProblem("CONFLICT_001", "Another process has recorded an outcome.");
    });
    // The outcome of the other process is committed now.
    return isProblem(result) ? once(due, decide) : result;
  }

  async function change(write: Write, due: ScheduleDue): Promise<Outcome> {
    const clock = { now, newId };
    const author = { userId: due.user_id, apiKeyId: null, via: "schedule" } as const;
    const context = () => readContext(write.tx, { author, cause: "scheduled" }, clock);
    const { project_id: projectId, flag_id: flagId, environment_id: environmentId } = due;
    const done = await changeFlag(
      { ...write, ...clock, context },
      { scope: { projectId, flagId, environmentId } },
      { enabled: due.action === "enable" },
    );
    if (isProblem(done) && isApprovalNeeded(done)) return failed(done.message);
    if (isProblem(done)) return cancelled("The flag or the environment was deleted.");
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

/** The outcome of a due change, as stored and as sent to the scheduler. */
export type Outcome = Omit<ScheduleResolved, "id" | "schedule_id">;

const applied = (at: Date): Outcome => ({
  outcome: "applied",
  applied_at: at.toISOString(),
  reason: null,
});

const cancelled = (reason: string): Outcome => ({
  outcome: "cancelled",
  applied_at: null,
  reason,
});

const failed = (reason: string): Outcome => ({
  outcome: "failed",
  applied_at: null,
  reason,
});

export function resolvedMessage(due: ScheduleDue, outcome: Outcome): ScheduleResolved {
  return { id: due.id, schedule_id: due.schedule_id, ...outcome };
}

/** Returns the verdict on the message: a failed change is dead-lettered for inspection. */
export function verdictOf({ outcome, reason }: Outcome): Verdict {
  return outcome === "failed" ? { deadLetter: reason ?? outcome } : "done";
}

/**
 * Retention period of outcomes. A copy of a message that arrives within it gets the stored outcome; a later copy would
 * make the change again. Dead letters, which an operator may republish, expire after 30 days, so this period is well
 * above that.
 */
export const inboxLifetimeDays = 90;

/** The status of a due change before it is made. */
type ChangeStatus = {
  /** The recorded outcome, or null for a new message. */
  outcome: Outcome | null;
  /** True if the project and the user belong to the organization in the message. */
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
 * Records an outcome. Returns false if the message already has one. Waits for a concurrent transaction that records an
 * outcome, until it commits or rolls back.
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
