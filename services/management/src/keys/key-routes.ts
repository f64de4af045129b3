import * as contract from "@halyard/contracts";
import {
  type Answer,
  answer,
  cursorOf,
  isProblem,
  noSuchCursor,
  type Problem,
  readCursor,
} from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import { answerAll } from "../access/answer-all.ts";
import { checkReachesEnvironment, reachesProject } from "../access/principal.ts";
import type { Routes } from "../access/routes.ts";
import { noSuchEnvironment } from "../tenancy/environment.ts";
import { issuedKeyResource, keyResource, onlyKeysOf } from "./key.ts";
import { type IssuedKey, issueKey, noSuchKey, revokeKey, rotateKey } from "./key-changes.ts";
import { findKey, findKeyScope, type KeyPosition, listKeys } from "./key-store.ts";

/** Registers the routes of API keys, for the operator, server keys of the project and signed-in people. */
export function registerKeyRoutes(
  routes: Routes,
  options: {
    sql: Sql;
    randomBytes: (size: number) => Buffer;
    now: () => Date;
    allowDemoUser: boolean;
  },
): void {
  const { sql, randomBytes } = options;

  routes.write(contract.issueKey, {
    run: (change, { params, body }) => issueKey(change, params, body, options),
    answer: issuedAnswer,
  });

  routes.read(contract.listKeys, async ({ params, query }, principal) => {
    if (!reachesProject(principal, params.projectId)) return noSuchEnvironment;
    const scope = await findKeyScope(sql, params);
    if (scope === undefined) return noSuchEnvironment;
    const problem = checkReachesEnvironment(principal, scope.environmentId);
    if (problem !== undefined) return problem;
    const { limit, cursor } = query;
    const userId = onlyKeysOf(principal, scope.projectId);
    const after = cursor === undefined ? undefined : positionOf(cursor);
    if (after !== undefined && isProblem(after)) return after;
    if (limit === undefined) {
      const endedSince = new Date(options.now().getTime() - listedAfterEndMs);
      const readPage = (last: KeyPosition | undefined) =>
        listKeys(sql, scope.environmentId, {
          ...{ after: last ?? after, endedSince, userId, limit: pageSize },
        });
      return answerAll("keys", readPage, keyResource);
    }
    const { items, more } = await listKeys(sql, scope.environmentId, { after, userId, limit });
    const last = more ? items.at(-1) : undefined;
    return answer.ok({
      keys: items.map(keyResource),
      next_cursor: last === undefined ? null : cursorAt(last),
    });
  });

  routes.read(contract.getKey, async ({ params }, principal) => {
    if (!reachesProject(principal, params.projectId)) return noSuchKey;
    const key = await findKey(sql, params);
    if (key === undefined) return noSuchKey;
    const userId = onlyKeysOf(principal, key.projectId);
    if (userId !== undefined && key.userId !== userId) return noSuchKey;
    return checkReachesEnvironment(principal, key.environmentId) ?? answer.ok(keyResource(key));
  });

  routes.write(contract.rotateKey, {
    run: (change, { params, body }) =>
      rotateKey(change, params, body.overlap_seconds ?? 0, randomBytes),
    answer: issuedAnswer,
  });

  routes.write(contract.revokeKey, {
    run: (change, { params, query }) =>
      revokeKey(change, params, { withIssued: query.issued ?? false }),
    answer: answer.noContent,
  });
}

/** Number of keys that a list without a limit reads at a time. */
const pageSize = 1_000;
/** Time that ended keys stay in a list without a limit, which would otherwise grow forever. */
const listedAfterEndMs = 30 * 24 * 60 * 60 * 1_000;

/** Keys have a creation time in whole milliseconds. Fourteen digits reach the year 5138, which PostgreSQL reads. */
const cursorAt = ({ createdAt, id }: KeyPosition) => cursorOf(`${createdAt.getTime()} ${id}`);

function positionOf(cursor: string): KeyPosition | Problem {
  const position = readCursor(cursor, (text) => /^\d{1,14} [a-z2-7]{16}$/.test(text));
  if (position === undefined) return noSuchCursor;
  const [createdMs, id = ""] = position.split(" ");
  return { createdAt: new Date(Number(createdMs)), id };
}

function issuedAnswer({ key, text }: IssuedKey): Answer {
  const location = `/api/v1/projects/${key.projectId}/environments/${key.environmentId}/keys/${key.id}`;
  const created = answer.created(location, issuedKeyResource(key, text));
  return { ...created, headers: { ...created.headers, "cache-control": "no-store" } };
}
