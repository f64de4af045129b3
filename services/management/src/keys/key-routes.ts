import * as contract from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import {
  type Answer,
  type App,
  answer,
  isRefusal,
  type Refusal,
  registerRoute,
} from "@halyard/service";
import { type Authenticate, reachesProject } from "../access/principal.ts";
import { noSuchEnvironment } from "../environments/environment.ts";
import type { AnswerOnce } from "../idempotency/answer-once.ts";
import type { Writer } from "../outbox/write.ts";
import { checkMayRead, issuedKeyResource, keyResource } from "./key.ts";
import { createKeyChanges, type IssuedKey, noSuchKey } from "./key-changes.ts";
import { findKey, findKeyPlace, listKeys } from "./key-store.ts";

/** The routes of API keys: for the operator, and for the project's own server keys. */
export function registerKeyRoutes(
  app: App,
  options: {
    sql: Sql;
    writer: Writer;
    answerOnce: AnswerOnce;
    authenticate: Authenticate;
    now: () => Date;
    newId: () => string;
    randomBytes: (size: number) => Buffer;
    allowDemoUser: boolean;
  },
): void {
  const { sql, writer, answerOnce, authenticate } = options;
  const changes = createKeyChanges(options);

  registerRoute(app, contract.issueKey, {
    authenticate,
    handle: (input, principal) =>
      writer((write) =>
        answerOnce(write, contract.issueKey, input, principal, async () => {
          const issued = await changes.issue(write, principal, input.params, input.body);
          return isRefusal(issued) ? issued : issuedAnswer(issued);
        }),
      ),
  });

  registerRoute(app, contract.listKeys, {
    authenticate,
    handle: async ({ params }, principal) => {
      if (!reachesProject(principal, params.projectId)) return noSuchEnvironment();
      const place = await findKeyPlace(sql, params);
      if (place === undefined) return noSuchEnvironment();
      const refusal = checkMayRead(principal, place.environmentId);
      if (refusal !== undefined) return refusal;
      const keys = await listKeys(sql, place.environmentId);
      return answer.ok({ keys: keys.map(keyResource) });
    },
  });

  registerRoute(app, contract.getKey, {
    authenticate,
    handle: async ({ params }, principal) => {
      if (!reachesProject(principal, params.projectId)) return noSuchKey();
      const key = await findKey(sql, params);
      if (key === undefined) return noSuchKey();
      return checkMayRead(principal, key.environmentId) ?? answer.ok(keyResource(key));
    },
  });

  registerRoute(app, contract.rotateKey, {
    authenticate,
    handle: (input, principal) =>
      writer((write) =>
        answerOnce(write, contract.rotateKey, input, principal, async () => {
          const overlapSeconds = input.body.overlap_seconds ?? 0;
          const rotated = await changes.rotate(write, principal, input.params, overlapSeconds);
          return isRefusal(rotated) ? rotated : issuedAnswer(rotated);
        }),
      ),
  });

  registerRoute(app, contract.revokeKey, {
    authenticate,
    handle: ({ params, query }, principal) =>
      writer(async (write): Promise<Answer | Refusal> => {
        const withIssued = query.issued ?? false;
        const revoked = await changes.revoke(write, principal, params, { withIssued });
        return isRefusal(revoked) ? revoked : answer.noContent();
      }),
  });
}

function issuedAnswer({ key, text }: IssuedKey): Answer {
  const location = `/api/v1/projects/${key.projectId}/environments/${key.environmentId}/keys/${key.id}`;
  const created = answer.created(location, issuedKeyResource(key, text));
  return { ...created, headers: { ...created.headers, "cache-control": "no-store" } };
}
