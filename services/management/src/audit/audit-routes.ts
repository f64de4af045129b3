import * as contract from "@halyard/contracts";
import {
  type Answer,
  answer,
  createProblem,
  cursorOf,
  isProblem,
  type Problem,
  readCursor,
} from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import { validate as isUuid } from "uuid";
import { noSuchProject, type Principal, reachesProject } from "../access/principal.ts";
import type { Routes } from "../access/routes.ts";
import { auditEntryResource } from "./audit-log.ts";
import { findAuditSequence, findOrganizationOf, listChanges } from "./audit-store.ts";

/** Default number of entries per page. */
const defaultLimit = 100;

/**
 * Registers the audit log of a project, for its server keys and the operator. A key with `environment_only` can read
 * only the entries that name its own environment, including those of schedules. Entries of flag settings, webhooks, the
 * project and users name no environment, so it cannot read them. The creation and the deletion of a flag name the
 * environment of the key that was used, and so does a change of settings that also changes a state there.
 */
export function registerAuditRoutes(routes: Routes, { sql }: { sql: Sql }): void {
  routes.read(contract.listChanges, async ({ params, query }, principal) => {
    if (!reachesProject(principal, params.projectId)) return noSuchProject;
    const { projectId } = params;
    // The operator can read the audit log of a deleted project. Its keys are no longer valid.
    const organizationId = await findOrganizationOf(sql, projectId);
    if (organizationId === null) return noSuchProject;

    const log = { projectId, organizationId };
    const page = await readPage(query, (id) => findAuditSequence(sql, log, id));
    if (isProblem(page)) return page;
    const { flag_id: flagId } = query;
    const which = { ...log, flagId, environmentId: onlyEnvironmentOf(principal) };
    const listed = await listChanges(sql, { ...which, ...filterOf(query) }, page);
    return pageAnswer(listed, auditEntryResource);
  });
}

type Query = {
  actor_id?: string | undefined;
  action?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
};

/** Returns the filter of a query. */
export const filterOf = ({ actor_id: actorId, action, since, until }: Query) => ({
  actorId,
  action,
  since: dateOf(since),
  until: dateOf(until),
});

/** Returns the page of a query. The cursor is the id of the last entry of an earlier page. */
export async function readPage(
  { limit = defaultLimit, cursor }: Query,
  findSequence: (entryId: string) => Promise<number | undefined>,
): Promise<{ beforeSequence: number | null; limit: number } | Problem> {
  if (cursor === undefined) return { beforeSequence: null, limit };
  const entryId = readCursor(cursor, isUuid);
  const beforeSequence = entryId === undefined ? undefined : await findSequence(entryId);
  if (beforeSequence !== undefined) return { beforeSequence, limit };
  return createProblem(
    "VALIDATION_001",
    "query parameter /cursor must be the `next_cursor` of an earlier answer",
  );
}

export function pageAnswer<Entry extends { id: string }>(
  { changes, more }: { changes: readonly Entry[]; more: boolean },
  resourceOf: (entry: Entry) => object,
): Answer {
  const last = more ? changes.at(-1) : undefined;
  return answer.ok({
    changes: changes.map(resourceOf),
    next_cursor: last === undefined ? null : cursorOf(last.id),
  });
}

/** The contract has checked the format. */
function dateOf(instant: string | undefined): Date | undefined {
  return instant === undefined ? undefined : new Date(contract.parseInstant(instant) ?? Number.NaN);
}

/** Returns the environment whose entries a principal sees; undefined for all entries. */
export function onlyEnvironmentOf(principal: Principal): string | undefined {
  if (principal.kind === "operator" || !principal.key.environmentOnly) return undefined;
  return principal.key.environmentId;
}
