import { checkKeyEnvironment } from "@halyard/api-keys";
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
import type { AuthenticateKey } from "../access/principal.ts";
import { authorOf } from "../audit/attribution.ts";
import type { Writer } from "../outbox/write.ts";
import { checkRules } from "./check-rules.ts";
import { type FlagChanges, noSuchFlag } from "./flag-changes.ts";
import { etagOf, flagStateResource, pathOfState } from "./flag-resource.ts";
import { findFlag } from "./flag-store.ts";
import { checkIfMatch } from "./precondition.ts";

/** The routes of a flag's state in any environment of the project. */
export function registerFlagStateRoutes(
  app: App,
  options: { sql: Sql; writer: Writer; changes: FlagChanges; authenticate: AuthenticateKey },
): void {
  const { sql, writer, changes, authenticate } = options;

  registerRoute(app, contract.getFlagState, {
    authenticate,
    handle: async ({ params }, { key }) => {
      const place = { ...key, flagId: params.flagId, environmentId: params.envId };
      const found = await findFlag(sql, place);
      if (found === undefined) return noSuchFlag();
      const refusal = checkKeyEnvironment(key, found.environment.id);
      if (refusal !== undefined) return refusal;
      return answer.ok(flagStateResource(found.state), { etag: etagOf(found.state) });
    },
  });

  registerRoute(app, contract.updateFlagState, {
    authenticate,
    handle: ({ params, body, request }, { key }) =>
      checkRules(body.targeting_rules) ??
      writer(async (write): Promise<Answer | Refusal> => {
        const changed = await changes.change(
          write,
          {
            place: { ...key, flagId: params.flagId, environmentId: params.envId },
            author: authorOf(key),
            cause: "manual",
            permit: ({ state }) =>
              checkKeyEnvironment(key, state.environmentId) ??
              checkIfMatch(request.ifMatch, state, pathOfState(state)),
          },
          body,
        );
        if (isRefusal(changed)) return changed;
        return answer.ok(flagStateResource(changed.state), { etag: etagOf(changed.state) });
      }),
  });
}
