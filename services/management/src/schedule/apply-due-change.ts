import type { ScheduleDue } from "@halyard/contracts";
import { isRefusal, refuse } from "@halyard/service";
import type { FlagState } from "../flags/flag.ts";
import { changeFlag } from "../flags/flag-changes.ts";
import type { Write, Writer } from "../outbox/write.ts";
import { readStanding, recordOutcome, type Standing } from "./inbox-store.ts";
import { applied, cancelled, failed, type Outcome } from "./outcome.ts";

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
    decide: (write: Write, standing: Standing) => Promise<Outcome>,
  ): Promise<Outcome> {
    const result = await writer(async (write) => {
      const standing = await readStanding(write.tx, due);
      if (standing.outcome !== null) return standing.outcome;
      const outcome = await decide(write, standing);
      if (await recordOutcome(write.tx, due.id, outcome)) return outcome;
      return refuse("CONFLICT_001", "Another process was faster with this message.");
    });
    // The other's outcome is there to be read now.
    return isRefusal(result) ? once(due, decide) : result;
  }

  async function change(write: Write, due: ScheduleDue): Promise<Outcome> {
    let before: FlagState | undefined;
    const changed = await changeFlag(
      { ...write, now, newId },
      {
        place: {
          projectId: due.project_id,
          flagId: due.flag_id,
          environmentId: due.environment_id,
        },
        author: { userId: due.user_id, apiKeyId: null },
        cause: "scheduled",
        permit: ({ state }) => {
          before = state;
          return undefined;
        },
      },
      { enabled: due.action === "enable" },
    );
    if (isRefusal(changed)) return cancelled("The flag or the environment is gone.");
    const isAsBefore = changed.state === before;
    return applied(isAsBefore ? now() : changed.state.updatedAt);
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
