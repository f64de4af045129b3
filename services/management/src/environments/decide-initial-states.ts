import { initialState } from "../flags/decide-create.ts";
import type { HistoryEntry } from "../flags/decision.ts";
import type { FlagState } from "../flags/flag.ts";
import { flagEntry } from "../flags/flag-entry.ts";
import { historyEntry } from "../flags/records.ts";
import { entryOf, type OutboxMessage } from "../outbox/outbox-message.ts";
import type { EnvironmentFill, ProjectFlag } from "./environment-fill.ts";

/** The rows and entries of flags in a new environment. */
export type InitialStates = {
  states: readonly FlagState[];
  history: readonly HistoryEntry[];
  messages: readonly OutboxMessage[];
};

/**
 * The states that flags have in a new environment since its creation. Nothing happens to the flags: they
 * keep their versions, and there is no event. Readers measure the delay of an entry from its
 * `committed_at`, so that is the present time.
 */
export function decideInitialStates(
  fill: Pick<EnvironmentFill, "environment" | "createdBy">,
  flags: readonly ProjectFlag[],
  circumstances: { now: Date; newId: () => string },
): InitialStates {
  const { now, newId } = circumstances;
  const occasion = { actor: { id: fill.createdBy }, cause: "manual", newId } as const;
  const added = flags.map((flag) => ({
    flag,
    state: initialState(flag, fill.environment.id, fill.environment.createdAt),
  }));
  return {
    states: added.map(({ state }) => state),
    history: added.map(({ state }) => historyEntry(state, occasion)),
    messages: added.map(({ flag, state }) =>
      entryOf(flagEntry(flag, { ...state, updatedAt: now })),
    ),
  };
}
