import type { CreateFlag, UpdateFlag } from "@halyard/contracts";
import { isRefusal, type Refusal, refuse } from "@halyard/service";
import {
  type Author,
  type Cause,
  type ChangeContext,
  type Clock,
  readContext,
} from "../access/change-context.ts";
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
  holdEnvironments,
  insertFlag,
  lockFlag,
  readStates,
  updateFlag,
} from "./flag-store.ts";
import type { WithCheckedRules } from "./targeting-rules.ts";

/**
 * The use cases: read and lock, decide, write what was decided. Each runs inside a write's
 * transaction, for a request or for a scheduled change.
 */
export type ChangeRequest = {
  place: FlagPlace;
  author: Author;
  cause: Cause;
  /** Looks at what is there before it is changed; a refusal leaves everything as it was. */
  permit: (current: { flag: Flag; state: FlagState }) => Refusal | undefined;
};

export type FlagAndState = { flag: Flag; state: FlagState };

type Either<T> = T | Promise<T>;

export type FlagChanges = {
  create(
    write: Write,
    place: { organizationId: string; projectId: string; environmentId: string },
    author: Author,
    request: WithCheckedRules<CreateFlag>,
  ): Promise<FlagAndState | Refusal>;
  change(
    write: Write,
    request: ChangeRequest,
    settings: WithCheckedRules<UpdateFlag>,
  ): Promise<(FlagAndState & { lastEvaluatedAt: Date | null }) | Refusal>;
  /** Writes any decision about a flag. It is made under the lock of the flag, so that no other change intervenes. */
  decide<R extends Decision | "unchanged">(
    write: Write,
    request: ChangeRequest,
    decide: (current: FlagInEnvironment, context: ChangeContext) => Either<R | Refusal>,
  ): Promise<{ current: FlagInEnvironment; decision: R } | Refusal>;
  remove(write: Write, request: ChangeRequest): Promise<{ removed: Flag } | Refusal>;
};

export function createFlagChanges(clock: Clock): FlagChanges {
  const fills = createEnvironmentFills(clock);

  async function lockPermitted(
    write: Write,
    request: ChangeRequest,
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

  const changes: FlagChanges = {
    async create(write, place, author, request) {
      const environments = await holdEnvironments(write.tx, place.projectId);
      const environment = environments.find(({ id }) => id === place.environmentId);
      if (environment === undefined) return noSuchFlag();
      const context = await readContext(write.tx, { author, cause: "manual" }, clock);
      const decision = decideCreate({ ...place, environments, environment }, request, context);
      if (!(await insertFlag(write.tx, decision))) return keyTaken(write, decision.flag);
      write.publish(decision.messages);
      return decision;
    },

    async change(write, request, settings) {
      const changed = await changes.decide(write, request, (current, context) =>
        decideChange(current, settings, context),
      );
      if (isRefusal(changed)) return changed;
      const { current, decision } = changed;
      if (decision === "unchanged") return current;
      return { ...decision, lastEvaluatedAt: current.lastEvaluatedAt };
    },

    async decide(write, request, decide) {
      const [current, context] = await Promise.all([
        lockPermitted(write, request),
        readContext(write.tx, request, clock),
      ]);
      if (isRefusal(current)) return current;
      const decision = await decide(current, context);
      if (decision === "unchanged") return { current, decision };
      if (isRefusal(decision)) return decision;
      write.finish(updateFlag(write.tx, decision));
      write.publish(decision.messages);
      return { current, decision };
    },

    async remove(write, request) {
      await holdEnvironments(write.tx, request.place.projectId);
      const current = await lockPermitted(write, request);
      if (isRefusal(current)) return current;
      const context = await readContext(write.tx, request, clock);
      const states = await readStates(write.tx, current.flag.id);
      const decision = decideDelete({ ...current, states }, context);
      await deleteFlag(write.tx, decision);
      write.publish(decision.messages);
      return { removed: decision.flag };
    },
  };
  return changes;
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
