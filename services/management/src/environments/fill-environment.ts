import { insertHistory, insertStates } from "../flags/flag-store.ts";
import type { Write } from "../outbox/write.ts";
import { decideInitialStates } from "./decide-initial-states.ts";
import type { EnvironmentFill } from "./environment-fill.ts";
import {
  claimFill,
  continueFill,
  deleteFill,
  fillsWithout,
  insertFill,
  lockFlagsWithoutState,
  nextFlags,
} from "./environment-fill-store.ts";

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
