import type { Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import type { TimeAndIds } from "../access/change-context.ts";
import { type Batches, startBatches } from "../outbox/batches.ts";
import { entryToPublish } from "../outbox/outbox-message.ts";
import type { Write, Writer } from "../outbox/write.ts";
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
import { type Decision, flagEntry, historyEntry, initialState } from "./flag.ts";
import { insertHistory, insertStates } from "./flag-store.ts";

/**
 * Stores the initial states of the flags of a project in a new environment, in batches. The transaction that creates
 * the environment writes the first batch, which is enough for most projects. A row of `environment_fills` records the
 * position of the rest.
 *
 * Until a state is stored, reads return the initial state. A change to the flag and a read of its history store the
 * state first. So the content of a state does not depend on the time at which it is stored.
 */

/** Maximum number of flags per batch. Larger batches are hardly faster, and hold their locks for longer than 50 ms. */
export const flagsAtOnce = 200;

/** Writes the first batch, and records the position of the rest. Call it after the environment is inserted. */
export async function startFill(
  write: Write & TimeAndIds,
  fill: Omit<EnvironmentFill, "afterKey">,
): Promise<void> {
  const rest = await fillBatch(write, { ...fill, afterKey: "" });
  if (rest !== undefined) await insertFill(write.tx, rest);
}

/** Writes the next batch of one environment. Returns undefined when all environments are complete. */
export async function continueFills(
  write: Write & TimeAndIds,
): Promise<{ environmentId: string; isComplete: boolean } | undefined> {
  const fill = await claimFill(write.tx);
  if (fill === undefined) return undefined;
  const rest = await fillBatch(write, fill);
  if (rest === undefined) await deleteFill(write.tx, fill);
  else await continueFill(write.tx, rest);
  return { environmentId: fill.environment.id, isComplete: rest === undefined };
}

/** Stores the missing states of a flag. */
export async function fillFlag(
  write: Write & TimeAndIds,
  scope: { projectId: string | null; flagId: string },
): Promise<void> {
  for (const fill of await fillsWithout(write.tx, scope))
    await fillFlags(write, fill, [scope.flagId]);
}

/** Writes the next batch. Returns the remaining fill, or undefined if the environment is complete. */
async function fillBatch(
  write: Write & TimeAndIds,
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
  { tx, publish, now, newId }: Write & TimeAndIds,
  fill: EnvironmentFill,
  flagIds: readonly string[],
): Promise<void> {
  const flags = await lockFlagsWithoutState(tx, fill, flagIds);
  if (flags.length === 0) return;
  const decision = decideInitialStates(fill, flags, { now: now(), newId });
  await Promise.all([insertStates(tx, decision.states), insertHistory(tx, decision.history)]);
  publish(decision.messages);
}

/**
 * Returns the states that flags have in a new environment from its creation on. The flags do not change: they keep
 * their versions, and no event is published. `committed_at` of the entries is the present time, because readers measure
 * the delay of an entry from it.
 */
export function decideInitialStates(
  fill: Pick<EnvironmentFill, "environment" | "createdBy">,
  flags: readonly ProjectFlag[],
  circumstances: { now: Date; newId: () => string },
): Pick<Decision, "states" | "history" | "messages"> {
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
      entryToPublish(flagEntry(flag, { ...state, updatedAt: now })),
    ),
  };
}

/** Starts the work that continues the fills of all environments. */
export function startFilling(
  options: TimeAndIds & { sql: Sql; writer: Writer; logger: Logger },
): Batches {
  const { now, newId } = options;
  return startBatches({
    ...options,
    hasWork: hasFills,
    async writeBatch(write) {
      const filled = await continueFills({ ...write, now, newId });
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
