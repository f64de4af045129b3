import type { Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import type { Clock } from "../access/change-context.ts";
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
import { type Decision, initialState } from "./flag.ts";
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

/** Flags of a batch. Larger batches are hardly faster, and hold their locks for longer than 50 ms. */
export const flagsAtOnce = 200;

/** Writes the first batch, and records the rest. Call it when the environment is inserted. */
export async function startFill(
  write: Write & Clock,
  fill: Omit<EnvironmentFill, "afterKey">,
): Promise<void> {
  const rest = await fillBatch(write, { ...fill, afterKey: "" });
  if (rest !== undefined) await insertFill(write.tx, rest);
}

/** Writes the next batch of one environment. Returns undefined when all environments are complete. */
export async function continueFills(
  write: Write & Clock,
): Promise<{ environmentId: string; isComplete: boolean } | undefined> {
  const fill = await claimFill(write.tx);
  if (fill === undefined) return undefined;
  const rest = await fillBatch(write, fill);
  if (rest === undefined) await deleteFill(write.tx, fill);
  else await continueFill(write.tx, rest);
  return { environmentId: fill.environment.id, isComplete: rest === undefined };
}

/** Writes a flag's missing states. */
export async function fillFlag(
  write: Write & Clock,
  scope: { projectId: string | null; flagId: string },
): Promise<void> {
  for (const fill of await fillsWithout(write.tx, scope))
    await fillFlags(write, fill, [scope.flagId]);
}

/** Returns the fill after its next batch; undefined when the environment is complete. */
async function fillBatch(
  write: Write & Clock,
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
  { tx, publish, now, newId }: Write & Clock,
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
 * The states that flags have in a new environment since its creation. Nothing happens to the flags: they
 * keep their versions, and there is no event. Readers measure the delay of an entry from its
 * `committed_at`, so that is the present time.
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

/** Continues the fills of all environments. */
export function startFilling(
  options: Clock & { sql: Sql; writer: Writer; logger: Logger },
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
