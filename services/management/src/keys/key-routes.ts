import * as contract from "@halyard/contracts";
import { type Answer, answer } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import { checkReachesEnvironment, reachesProject } from "../access/principal.ts";
import type { Routes } from "../access/routes.ts";
import { noSuchEnvironment } from "../tenancy/environment.ts";
import { issuedKeyResource, keyResource } from "./key.ts";
import { type IssuedKey, issueKey, noSuchKey, revokeKey, rotateKey } from "./key-changes.ts";
import { findKey, findKeyScope, listKeys } from "./key-store.ts";

/** Registers the routes of API keys, for the operator and for server keys of the project. */
export function registerKeyRoutes(
  routes: Routes,
  options: { sql: Sql; randomBytes: (size: number) => Buffer; allowDemoUser: boolean },
): void {
  const { sql, randomBytes } = options;

  routes.write(contract.issueKey, {
    run: (change, { params, body }) => issueKey(change, params, body, options),
    answer: issuedAnswer,
  });

  routes.read(contract.listKeys, async ({ params }, principal) => {
    if (!reachesProject(principal, params.projectId)) return noSuchEnvironment;
    const scope = await findKeyScope(sql, params);
    if (scope === undefined) return noSuchEnvironment;
    const problem = checkReachesEnvironment(principal, scope.environmentId);
    if (problem !== undefined) return problem;
    const keys = await listKeys(sql, scope.environmentId);
    return answer.ok({ keys: keys.map(keyResource) });
  });

  routes.read(contract.getKey, async ({ params }, principal) => {
    if (!reachesProject(principal, params.projectId)) return noSuchKey;
    const key = await findKey(sql, params);
    if (key === undefined) return noSuchKey;
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

function issuedAnswer({ key, text }: IssuedKey): Answer {
  const location = `/api/v1/projects/${key.projectId}/environments/${key.environmentId}/keys/${key.id}`;
  const created = answer.created(location, issuedKeyResource(key, text));
  return { ...created, headers: { ...created.headers, "cache-control": "no-store" } };
}
