import { entryMessage, eventMessage } from "../outbox/outbox-message.ts";
import type { Decision } from "./decision.ts";
import type { Flag, FlagEnvironment, FlagState } from "./flag.ts";
import { flagEvent } from "./flag-event.ts";
import { momentAfter, type Occasion } from "./occasion.ts";
import { auditEntry, auditedSettings, auditedState } from "./records.ts";

/**
 * The end of a flag, in every environment. One event tells of it, with the last state in the key's
 * environment; in the snapshot a deletion with the next version takes the place of each state, so
 * that no older value can come back. The audit log keeps what the flag was in every environment, an
 * entry each.
 */
export function decideDelete(
  current: {
    flag: Flag;
    state: FlagState;
    environment: FlagEnvironment;
    /** Those of all environments of the project. */
    states: readonly FlagState[];
  },
  occasion: Occasion,
): Decision {
  const { state, environment } = current;
  const at = momentAfter(current.flag.lastEventAt, occasion.now);
  const version = current.flag.version + 1;
  const flag: Flag = { ...current.flag, version, lastEventAt: at, updatedAt: at };
  const event = flagEvent(
    "flag.deleted",
    { flag, environment, state, before: state, at },
    occasion,
  );
  const deletion = { deleted: true, version, committed_at: at.toISOString() } as const;
  return {
    flag,
    states: [],
    history: [],
    audit: current.states.map((last) => {
      const before = { ...auditedSettings(flag), ...auditedState(last) };
      const { environmentId } = last;
      return auditEntry("deleted", { flag, environmentId, before, after: null, at }, occasion);
    }),
    messages: [
      eventMessage(event),
      ...current.states.map(({ environmentId }) =>
        entryMessage(
          {
            kind: "flag",
            organizationId: flag.organizationId,
            environmentId,
            flagId: flag.id,
          },
          deletion,
        ),
      ),
    ],
  };
}
