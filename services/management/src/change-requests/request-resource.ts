import type {
  ChangeRequest as ChangeRequestResource,
  ProposedChange as ProposedChangeResource,
} from "@halyard/contracts";
import type { Sql, Transaction } from "@halyard/postgres";
import { summaryOf } from "../audiences/audience.ts";
import { findAudience } from "../audiences/audience-store.ts";
import { findFlag } from "../flags/flag-store.ts";
import { variationsResource } from "../flags/variations.ts";
import { baseIdOf, type Place } from "./base.ts";
import { type ChangeRequest, type DecidedChange, listedRequestResource } from "./change-request.ts";
import type { RequestAndStanding } from "./request-changes.ts";
import { findFlagAnywhere } from "./values-of-changes.ts";

/** Returns a request with its changes. A value that something else has changed is beside the one before. */
export async function requestResource(
  sql: Sql | Transaction,
  { request, standing, place }: RequestAndStanding,
): Promise<ChangeRequestResource> {
  const isStale = standing.differences.length > 0 && request.status !== "applied";
  const changes = await Promise.all(
    request.changes.map(async (change) => {
      const now = isStale ? await readNow(sql, { request, place }, change) : {};
      return { ...changeResource(change), ...now } as ProposedChangeResource;
    }),
  );
  const differences = [...standing.differences];
  return { ...listedRequestResource(request, standing), changes, differences };
}

function changeResource(change: DecidedChange): ProposedChangeResource {
  switch (change.kind) {
    case "flag_variations":
      return {
        ...change,
        variations: variationsResource(change.variations) ?? [],
        before: variationsResource(change.before) ?? [],
      };
    case "audience_list": {
      const { add, remove, ...rest } = change;
      return { ...rest, added: add.length, removed: remove.length };
    }
    case "state":
    case "flag_deletion":
    case "audience":
    case "protection":
      return change as ProposedChangeResource;
  }
}

/** Returns the current value of what a change replaces, if its version is not the one in the base. */
async function readNow(
  sql: Sql | Transaction,
  { request, place }: { request: ChangeRequest; place: Place },
  change: DecidedChange,
): Promise<{ now?: unknown }> {
  const stored = await readStored(sql, place, change);
  const isSame = String(stored?.version) === request.base[baseIdOf(change)]?.version;
  return stored === undefined || isSame ? {} : { now: stored.now };
}

/** Returns undefined if it was deleted, or if responses contain no values of it. */
async function readStored(
  sql: Sql | Transaction,
  place: Place,
  change: DecidedChange,
): Promise<{ version: number; now: unknown } | undefined> {
  const { projectId, environments } = place;
  switch (change.kind) {
    case "state": {
      const { flag_id: flagId, environment_id: environmentId } = change;
      const found = await findFlag(sql, { projectId, flagId, environmentId });
      return found && { version: found.state.version, now: found.state.content };
    }
    case "flag_variations": {
      const flag = await findFlagAnywhere({ sql, ...place }, change.flag_id);
      const now = variationsResource(flag?.variations ?? []);
      return flag && { version: flag.variationsVersion ?? 1, now };
    }
    case "audience": {
      const audience = await findAudience(sql, { projectId, key: change.audience });
      if (audience === undefined) return undefined;
      const { version, match, list } = audience;
      return { version, now: { match, list: summaryOf(list) } };
    }
    case "protection": {
      const found = environments.find(({ id }) => id === change.environment_id);
      return found && { version: found.version, now: found.protection };
    }
    case "flag_deletion":
    case "audience_list":
      return undefined;
  }
}
