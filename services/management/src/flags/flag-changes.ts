import type { CreateFlag, UpdateFlag } from "@halyard/contracts";
import { isRefusal, type Refusal, refuse } from "@halyard/service";
import type { Author, Cause, Occasion } from "../access/change-context.ts";
import { readNewestEntries } from "../history/history-store.ts";
import { decideRollback, type RollbackDecision } from "../history/rollback.ts";
import type { Write } from "../outbox/write.ts";
import { decideChange, decideCreate, decideDelete } from "./decide-flag.ts";
import { createEnvironmentFills } from "./environment-fills.ts";
import type { Decision, Flag, FlagState } from "./flag.ts";
import { pathOf } from "./flag-resource.ts";
import {
  deleteFlag,
  type FlagInEnvironment,
  type FlagPlace,
  findFlagId,
  insertFlag,
  lockFlag,
  readStates,
  updateFlag,
} from "./flag-store.ts";
import { holdEnvironments, readActor } from "./project-store.ts";

/**
 * The use cases: read and lock, decide, write what was decided. Each runs inside a write's
 * transaction, whoever asks for it. Rules have been checked before, by whoever took them.
 */
export type ChangeRequest = {
  place: FlagPlace;
  author: Author;
  cause: Cause;
  /** Looks at what is there before it is changed; a refusal leaves everything as it was. */
  permit: (current: { flag: Flag; state: FlagState }) => Refusal | undefined;
};

export type FlagAndState = { flag: Flag; state: FlagState };

export type FlagChanges = {
  create(
    write: Write,
    place: { organizationId: string; projectId: string; environmentId: string },
    author: Author,
    request: CreateFlag,
  ): Promise<FlagAndState | Refusal>;
  change(
    write: Write,
    request: ChangeRequest,
    settings: UpdateFlag,
  ): Promise<(FlagAndState & { lastEvaluatedAt: Date | null }) | Refusal>;
  rollBack(
    write: Write,
    request: Omit<ChangeRequest, "cause">,
  ): Promise<Pick<RollbackDecision, "flag" | "state" | "restored"> | Refusal>;
  remove(write: Write, request: ChangeRequest): Promise<{ removed: Flag } | Refusal>;
};

export function createFlagChanges(options: { now: () => Date; newId: () => string }): FlagChanges {
  const fills = createEnvironmentFills(options);

  async function occasionOf(write: Write, author: Author, cause: Cause): Promise<Occasion> {
    const actor = await readActor(write.tx, author.userId);
    return { actor, apiKeyId: author.apiKeyId, cause, now: options.now(), newId: options.newId };
  }

  async function lockPermitted(
    write: Write,
    request: Omit<ChangeRequest, "cause">,
  ): Promise<FlagInEnvironment | Refusal> {
    const { place } = request;
    let current = await lockFlag(write.tx, place);
    if (current === undefined || current.lacksStates) {
      await fills.fillFlag(write, place);
      current = await lockFlag(write.tx, place);
    }
    if (current === undefined) return noSuchFlag();
    return request.permit(current) ?? current;
  }

  return {
    async create(write, place, author, request) {
      const environments = await holdEnvironments(write.tx, place.projectId);
      const environment = environments.find(({ id }) => id === place.environmentId);
      if (environment === undefined) return noSuchFlag();
      const occasion = await occasionOf(write, author, "manual");
      const decision = decideCreate({ ...place, environments, environment }, request, occasion);
      if (!(await insertFlag(write.tx, decision))) return keyTaken(write, decision.flag);
      write.publish(decision.messages);
      return decision;
    },

    async change(write, request, settings) {
      const [current, occasion] = await Promise.all([
        lockPermitted(write, request),
        occasionOf(write, request.author, request.cause),
      ]);
      if ("refused" in current) return current;
      const decision = decideChange(current, settings, occasion);
      if (decision === "unchanged") return current;
      await carryOut(write, decision);
      return { ...decision, lastEvaluatedAt: current.lastEvaluatedAt };
    },

    async rollBack(write, request) {
      const [current, occasion] = await Promise.all([
        lockPermitted(write, request),
        occasionOf(write, request.author, "rollback"),
      ]);
      if ("refused" in current) return current;
      // Read under the flag's lock, so that no other change comes between what is read and written.
      const newestFirst = await readNewestEntries(write.tx, current.state, 2);
      const decision = decideRollback(current, newestFirst, occasion);
      if (isRefusal(decision)) return decision;
      await carryOut(write, decision);
      return decision;
    },

    async remove(write, request) {
      await holdEnvironments(write.tx, request.place.projectId);
      const current = await lockPermitted(write, request);
      if ("refused" in current) return current;
      const occasion = await occasionOf(write, request.author, request.cause);
      const states = await readStates(write.tx, current.flag.id);
      const decision = decideDelete({ ...current, states }, occasion);
      await deleteFlag(write.tx, decision);
      write.publish(decision.messages);
      return { removed: decision.flag };
    },
  };
}

async function carryOut(write: Write, decision: Decision): Promise<void> {
  const updated = updateFlag(write.tx, decision);
  write.publish(decision.messages);
  await updated;
}

/** The flag with the key can be deleted before its id is read; then the refusal has no `Location`. */
async function keyTaken(write: Write, flag: Flag): Promise<Refusal> {
  const id = await findFlagId(write.tx, flag);
  return refuse(
    "CONFLICT_001",
    `The project already has a flag with the key ${flag.key}.`,
    id === undefined ? undefined : { location: pathOf({ id }) },
  );
}

export function noSuchFlag(): Refusal {
  return refuse("NOT_FOUND_001", "There is no such flag or environment in this project.");
}
