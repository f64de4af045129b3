import type { CreateFlag, UpdateFlag } from "@halyard/contracts";
import { type Refusal, refuse } from "@halyard/service";
import type { Write } from "../outbox/write.ts";
import { decideChange } from "./decide-change.ts";
import { decideCreate } from "./decide-create.ts";
import { decideDelete } from "./decide-delete.ts";
import type { Flag, FlagEnvironment, FlagState } from "./flag.ts";
import { deleteFlag, type FlagPlace, insertFlag, lockFlag, updateFlag } from "./flag-store.ts";
import type { Cause, Occasion } from "./occasion.ts";
import { holdEnvironments, readActor } from "./project-store.ts";
import { checkRulesSize } from "./rules-size.ts";

/**
 * The use cases: read and lock, decide, write what was decided. Each runs inside a write's
 * transaction, whoever asks for it.
 */
export type ChangeRequest = {
  place: FlagPlace;
  userId: string;
  cause: Cause;
  /** Looks at what is there before it is changed; a refusal leaves everything as it was. */
  permit: (current: { flag: Flag; state: FlagState }) => Refusal | undefined;
};

export type FlagAndState = { flag: Flag; state: FlagState };

export type FlagChanges = {
  create(
    write: Write,
    place: { organizationId: string; projectId: string; environmentId: string },
    userId: string,
    request: CreateFlag,
  ): Promise<FlagAndState | Refusal>;
  change(
    write: Write,
    request: ChangeRequest,
    settings: UpdateFlag,
  ): Promise<FlagAndState | Refusal>;
  remove(write: Write, request: ChangeRequest): Promise<{ removed: Flag } | Refusal>;
};

export function createFlagChanges(options: { now: () => Date; newId: () => string }): FlagChanges {
  async function occasionOf(write: Write, userId: string, cause: Cause): Promise<Occasion> {
    const actor = await readActor(write.tx, userId);
    return { actor, cause, now: options.now(), newId: options.newId };
  }

  return {
    async create(write, place, userId, request) {
      const tooLarge = checkRulesSize(request.targeting_rules);
      if (tooLarge !== undefined) return tooLarge;
      const environments = await holdEnvironments(write.tx, place.projectId);
      const environment = environments.find(({ id }) => id === place.environmentId);
      if (environment === undefined) return noSuchFlag();
      const occasion = await occasionOf(write, userId, "manual");
      const decision = decideCreate({ ...place, environments, environment }, request, occasion);
      if (!(await insertFlag(write.tx, decision)))
        return refuse(
          "CONFLICT_001",
          `The project already has a flag with the key ${request.key}.`,
        );
      write.publish(decision.messages);
      return decision;
    },

    async change(write, request, settings) {
      const tooLarge = checkRulesSize(settings.targeting_rules);
      if (tooLarge !== undefined) return tooLarge;
      const [current, occasion] = await Promise.all([
        lockPermitted(write, request),
        occasionOf(write, request.userId, request.cause),
      ]);
      if ("refused" in current) return current;
      const decision = decideChange(current, settings, occasion);
      if (decision === "unchanged") return current;
      const updated = updateFlag(write.tx, decision);
      write.publish(decision.messages);
      await updated;
      return decision;
    },

    async remove(write, request) {
      const environments = await holdEnvironments(write.tx, request.place.projectId);
      const current = await lockPermitted(write, request);
      if ("refused" in current) return current;
      const occasion = await occasionOf(write, request.userId, request.cause);
      const environmentIds = environments.map((environment) => environment.id);
      const decision = decideDelete({ ...current, environmentIds }, occasion);
      await deleteFlag(write.tx, decision);
      write.publish(decision.messages);
      return { removed: decision.flag };
    },
  };
}

async function lockPermitted(
  write: Write,
  request: ChangeRequest,
): Promise<(FlagAndState & { environment: FlagEnvironment }) | Refusal> {
  const current = await lockFlag(write.tx, request.place);
  if (current === undefined) return noSuchFlag();
  return request.permit(current) ?? current;
}

export function noSuchFlag(): Refusal {
  return refuse("NOT_FOUND_001", "There is no such flag or environment in this project.");
}
