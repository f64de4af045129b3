import type { DirectoryKey } from "@halyard/api-keys";
import * as contract from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import {
  type Answer,
  type App,
  answer,
  isRefusal,
  type Refusal,
  refuse,
  registerRoute,
} from "@halyard/service";
import type { AuthenticateKey } from "../access/principal.ts";
import type { Writer } from "../outbox/write.ts";
import { type FlagChanges, noSuchFlag } from "./flag-changes.ts";
import { etagOf, flagStateResource } from "./flag-resource.ts";
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
      const refusal = checkEnvironment(key, found.environment.id);
      if (refusal !== undefined) return refusal;
      return answer.ok(flagStateResource(found.state), { etag: etagOf(found.state) });
    },
  });

  registerRoute(app, contract.updateFlagState, {
    authenticate,
    handle: ({ params, body, request }, { key }) =>
      writer(async (write): Promise<Answer | Refusal> => {
        const changed = await changes.change(
          write,
          {
            place: { ...key, flagId: params.flagId, environmentId: params.envId },
            userId: key.userId,
            cause: "manual",
            permit: ({ state }) =>
              checkEnvironment(key, state.environmentId) ?? checkIfMatch(request.ifMatch, state),
          },
          body,
        );
        if (isRefusal(changed)) return changed;
        return answer.ok(flagStateResource(changed.state), { etag: etagOf(changed.state) });
      }),
  });
}

/** A key made with `environment_only` works in its own environment alone. */
export function checkEnvironment(key: DirectoryKey, environmentId: string): Refusal | undefined {
  if (!key.environmentOnly || key.environmentId === environmentId) return undefined;
  return refuse("AUTH_002", "This key may be used in its own environment only.");
}
