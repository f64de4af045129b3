import * as contract from "@halyard/contracts";
import { answer } from "@halyard/http";
import type { Callers } from "@halyard/people";
import type { Sql } from "@halyard/postgres";
import { validate as isUuid } from "uuid";
import { noSuchProject, reachesProject } from "../access/principal.ts";
import type { Routes } from "../access/routes.ts";
import { onlyEnvironmentOf } from "../audit/audit-routes.ts";
import { findAuditSequence } from "../audit/audit-store.ts";
import { type Opening, operatorCaller } from "./change-stream.ts";
import type { ChangeStreams } from "./change-streams.ts";
import { countAfter, type Feed, findOrganizationOfExisting, nilId } from "./feed-store.ts";

/**
 * Registers the stream of changes. It reads the database as any other route, so it can be opened only while PostgreSQL
 * is available.
 */
export function registerChangeStream(
  routes: Routes,
  { sql, streams, callers }: { sql: Sql; streams: ChangeStreams; callers: Callers },
): void {
  routes.read(contract.streamChanges, async ({ params, request }, principal) => {
    if (!reachesProject(principal, params.projectId)) return noSuchProject;
    const projectId = params.projectId.toLowerCase();
    const organizationId = await findOrganizationOfExisting(sql, projectId);
    if (organizationId === undefined) return noSuchProject;
    const feed = { projectId, organizationId, environmentId: onlyEnvironmentOf(principal) };
    const lastEventId = request.headers["last-event-id"];
    const resume =
      typeof lastEventId === "string" ? await resumeAfter(sql, feed, lastEventId) : undefined;
    const key = principal.kind === "key" ? principal.key : undefined;
    const caller = key?.id ?? operatorCaller;
    const problem = streams.checkRoom({ caller, feed });
    if (problem !== undefined) return problem;
    return answer.stream((response) =>
      streams.open(response, {
        ...{ feed, caller, resume },
        isOfSession: key?.session !== undefined,
        expiresAtMs: key?.expiresAtMs,
        mayContinue: async () =>
          key === undefined || callers.mayContinue(contract.streamChanges, key, request),
      }),
    );
  });
}

async function resumeAfter(sql: Sql, feed: Feed, entryId: string): Promise<Opening["resume"]> {
  if (!isUuid(entryId)) return { reset: "unknown_id" };
  const position = entryId === nilId ? 0 : await findAuditSequence(sql, feed, entryId);
  if (position === undefined) return { reset: "unknown_id" };
  const limit = contract.maxMissedChanges + 1;
  const missed = await countAfter(sql, feed, { after: position, limit });
  return missed === limit ? { reset: "too_many_changes" } : { position };
}
