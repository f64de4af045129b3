import * as contract from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import {
  type Answer,
  type App,
  answer,
  cursorOf,
  isRefusal,
  namesTag,
  noSuchCursor,
  type Refusal,
  readCursor,
  registerRoute,
} from "@halyard/service";
import type { AuthenticateKey } from "../access/principal.ts";
import { authorOf } from "../audit/attribution.ts";
import { longestPageBytes } from "../audit/page-bounds.ts";
import type { AnswerOnce } from "../idempotency/answer-once.ts";
import type { Writer } from "../outbox/write.ts";
import { answerAllFlags, type ReadFlagPage } from "./all-flags.ts";
import { checkRules } from "./check-rules.ts";
import { type FlagChanges, noSuchFlag } from "./flag-changes.ts";
import { checkMayChangeSettings, checkMayDelete } from "./flag-permission.ts";
import { etagOf, flagResource, pathOf, readTagOf, resourceOf } from "./flag-resource.ts";
import { findFlag, listFlags } from "./flag-store.ts";
import { checkIfMatch } from "./precondition.ts";

/** The routes of flags and of their states. Every one needs a server key of the project. */
export function registerFlagRoutes(
  app: App,
  options: {
    sql: Sql;
    writer: Writer;
    changes: FlagChanges;
    answerOnce: AnswerOnce;
    authenticate: AuthenticateKey;
  },
): void {
  const { sql, writer, changes, answerOnce, authenticate } = options;

  registerRoute(app, contract.createFlag, {
    authenticate,
    handle: (input, principal) =>
      checkRules(input.body.targeting_rules) ??
      writer((write) =>
        answerOnce(write, contract.createFlag, input, principal, async () => {
          const { key } = principal;
          const created = await changes.create(write, key, authorOf(key), input.body);
          if (isRefusal(created)) return created;
          const { flag, state } = created;
          return answer.created(pathOf(flag), flagResource(flag, state, null), {
            etag: etagOf(flag),
          });
        }),
      ),
  });

  registerRoute(app, contract.listFlags, {
    authenticate,
    handle: async ({ query }, { key }) => {
      const { cursor, limit } = query;
      const afterKey = cursor === undefined ? "" : readCursor(cursor, isFlagKey);
      if (afterKey === undefined) return noSuchCursor;
      const { key: flagKey } = query;
      const isPossible = flagKey === undefined || isFlagKey(flagKey);
      const readPage: ReadFlagPage = async (page) =>
        isPossible ? listFlags(sql, { ...key, flagKey }, page) : { flags: [], more: false };
      if (limit === undefined) return answerAllFlags(readPage, afterKey);
      const { flags, more } = await readPage({ afterKey, limit, longestBytes: longestPageBytes });
      const last = more ? flags.at(-1) : undefined;
      return answer.ok({
        flags: flags.map(resourceOf),
        next_cursor: last === undefined ? null : cursorOf(last.flag.key),
      });
    },
  });

  registerRoute(app, contract.getFlag, {
    authenticate,
    handle: async ({ params, request }, { key }) => {
      const found = await findFlag(sql, { ...key, flagId: params.id });
      if (found === undefined) return noSuchFlag();
      const resource = resourceOf(found);
      const etag = readTagOf(resource);
      const ifNoneMatch = request.headers["if-none-match"];
      if (ifNoneMatch !== undefined && namesTag(ifNoneMatch, etag)) return answer.notModified(etag);
      return answer.ok(resource, { etag });
    },
  });

  registerRoute(app, contract.updateFlag, {
    authenticate,
    handle: ({ params, body, request }, { key }) =>
      checkRules(body.targeting_rules) ??
      writer(async (write): Promise<Answer | Refusal> => {
        const changed = await changes.change(
          write,
          {
            place: { ...key, flagId: params.id },
            author: authorOf(key),
            cause: "manual",
            permit: ({ flag }) =>
              checkMayChangeSettings(key, flag, body) ??
              checkIfMatch(request.ifMatch, flag, pathOf(flag)),
          },
          body,
        );
        if (isRefusal(changed)) return changed;
        return answer.ok(resourceOf(changed), { etag: etagOf(changed.flag) });
      }),
  });

  registerRoute(app, contract.deleteFlag, {
    authenticate,
    handle: ({ params, request }, { key }) =>
      writer(async (write): Promise<Answer | Refusal> => {
        const removed = await changes.remove(write, {
          place: { ...key, flagId: params.id },
          author: authorOf(key),
          cause: "manual",
          permit: ({ flag }) =>
            checkMayDelete(key) ?? checkIfMatch(request.ifMatch, flag, pathOf(flag)),
        });
        return isRefusal(removed) ? removed : answer.noContent();
      }),
  });
}

function isFlagKey(text: string): boolean {
  return contract.FlagKey.safeParse(text).success;
}
