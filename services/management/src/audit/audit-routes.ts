import * as contract from "@halyard/contracts";
import { answer, createProblem, cursorOf, readCursor } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import { validate as isUuid } from "uuid";
import { noSuchProject, type Principal, reachesProject } from "../access/principal.ts";
import type { Routes } from "../access/routes.ts";
import { auditEntryResource } from "./audit-log.ts";
import {
  type AuditLog,
  findAuditSequence,
  findOrganizationOf,
  listChanges,
} from "./audit-store.ts";

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
    const { limit = defaultLimit, cursor } = query;
    const beforeSequence = cursor === undefined ? null : await sequenceOfCursor(sql, log, cursor);
    if (beforeSequence === undefined)
      return createProblem(
        "VALIDATION_001",
        "query parameter /cursor must be the `next_cursor` of an earlier answer",
      );
    const { changes, more } = await listChanges(
      sql,
      {
        ...log,
        flagId: query.flag_id,
        environmentId: onlyEnvironmentOf(principal),
        actorId: query.actor_id,
        action: query.action,
        since: dateOf(query.since),
        until: dateOf(query.until),
      },
      { beforeSequence, limit },
    );
    const last = more ? changes.at(-1) : undefined;
    return answer.ok({
      changes: changes.map(auditEntryResource),
      next_cursor: last === undefined ? null : cursorOf(last.id),
    });
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

async function sequenceOfCursor(
  sql: Sql,
  log: AuditLog,
  cursor: string,
): Promise<number | undefined> {
  const changeId = readCursor(cursor, isUuid);
  if (changeId === undefined) return undefined;
  return findAuditSequence(sql, log, changeId);
}
