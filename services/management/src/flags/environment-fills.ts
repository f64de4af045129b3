import type { Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import { type Batches, startBatches } from "../outbox/batches.ts";
import { entryOf, type OutboxMessage } from "../outbox/outbox-message.ts";
import type { Write, Writer } from "../outbox/write.ts";
import { initialState } from "./decide-flag.ts";
import {
  claimFill,
  continueFill,
  deleteFill,
  type EnvironmentFill,
  fillsWithout,
  hasFills,
  insertFill,
  lockFlagsWithoutState,
  nextFlags,
  type ProjectFlag,
} from "./environment-fill-store.ts";
import type { FlagState, HistoryEntry } from "./flag.ts";
import { flagEntry, historyEntry } from "./flag-events.ts";
import { insertHistory, insertStates } from "./flag-store.ts";

/**
 * Gives the flags of a project their states in a new environment, in batches. The transaction that creates
 * the environment writes the first batch, so that most projects need no other. A row of
 * `environment_fills` keeps the position of the rest.
 *
 * Until a state is stored, reads return the initial state. A change of the flag and a read of its history
 * store the state first. So a state is the same whenever it is stored.
 */
export type EnvironmentFills = {
  /** Writes the first batch, and records the rest. Call it when the environment is inserted. */
  start(write: Write, fill: Omit<EnvironmentFill, "afterKey">): Promise<void>;
  /** Writes the next batch of one environment. Returns undefined when all environments are complete. */
  continue(write: Write): Promise<{ environmentId: string; isComplete: boolean } | undefined>;
  /** Writes a flag's missing states. */
  fillFlag(write: Write, place: { projectId: string | null; flagId: string }): Promise<void>;
};

/** Flags of a batch. Larger batches are hardly faster, and hold their locks for longer than 50 ms. */
export const flagsAtOnce = 200;

export function createEnvironmentFills(options: {
  now: () => Date;
  newId: () => string;
}): EnvironmentFills {
  /** Returns the fill after its next batch; undefined when the environment is complete. */
  async function fillBatch(
    write: Write,
    fill: EnvironmentFill,
  ): Promise<EnvironmentFill | undefined> {
    const next = await nextFlags(write.tx, fill, flagsAtOnce);
    await fillFlags(
      write,
      fill,
      next.map(({ id }) => id),
    );
    const last = next.at(-1);
    if (last === undefined || next.length < flagsAtOnce) return undefined;
    return { ...fill, afterKey: last.key };
  }

  async function fillFlags(
    write: Write,
    fill: EnvironmentFill,
    flagIds: readonly string[],
  ): Promise<void> {
    const flags = await lockFlagsWithoutState(write.tx, fill, flagIds);
    if (flags.length === 0) return;
    const decision = decideInitialStates(fill, flags, { now: options.now(), newId: options.newId });
    await Promise.all([
      insertStates(write.tx, decision.states),
      insertHistory(write.tx, decision.history),
    ]);
    write.publish(decision.messages);
  }

  return {
    async start(write, fill) {
      const rest = await fillBatch(write, { ...fill, afterKey: "" });
      if (rest !== undefined) await insertFill(write.tx, rest);
    },

    async continue(write) {
      const fill = await claimFill(write.tx);
      if (fill === undefined) return undefined;
      const rest = await fillBatch(write, fill);
      if (rest === undefined) await deleteFill(write.tx, fill);
      else await continueFill(write.tx, rest);
      return { environmentId: fill.environment.id, isComplete: rest === undefined };
    },

    async fillFlag(write, place) {
      for (const fill of await fillsWithout(write.tx, place))
        await fillFlags(write, fill, [place.flagId]);
    },
  };
}

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
  const context = { actor: { id: fill.createdBy }, cause: "manual", newId } as const;
  const added = flags.map((flag) => ({
    flag,
    state: initialState(flag, fill.environment.id, fill.environment.createdAt),
  }));
  return {
    states: added.map(({ state }) => state),
    history: added.map(({ state }) => historyEntry(state, context)),
    messages: added.map(({ flag, state }) =>
      entryOf(flagEntry(flag, { ...state, updatedAt: now })),
    ),
  };
}

/** Continues the fills of all environments. */
export function startFilling(options: {
  sql: Sql;
  writer: Writer;
  now: () => Date;
  newId: () => string;
  logger: Logger;
}): Batches {
  const fills = createEnvironmentFills(options);
  return startBatches({
    ...options,
    hasWork: hasFills,
    async writeBatch(write) {
      const filled = await fills.continue(write);
      if (filled?.isComplete)
        options.logger.info(
          { environmentId: filled.environmentId },
          "the environment contains all flags",
        );
      return filled !== undefined;
    },
    failure: "a new environment was not filled",
  });
}
