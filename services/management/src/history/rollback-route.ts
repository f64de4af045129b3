import { checkKeyEnvironment } from "@halyard/api-keys";
import * as contract from "@halyard/contracts";
import { type App, answer, isRefusal, registerRoute } from "@halyard/service";
import type { AuthenticateKey } from "../access/principal.ts";
import { authorOf } from "../audit/attribution.ts";
import type { FlagChanges } from "../flags/flag-changes.ts";
import { etagOf, pathOfState } from "../flags/flag-resource.ts";
import { checkIfMatch } from "../flags/precondition.ts";
import type { AnswerOnce } from "../idempotency/answer-once.ts";
import type { Writer } from "../outbox/write.ts";

/** The way back to the state before the newest one, for the project's server keys. */
export function registerRollbackRoute(
  app: App,
  options: {
    writer: Writer;
    changes: FlagChanges;
    answerOnce: AnswerOnce;
    authenticate: AuthenticateKey;
  },
): void {
  const { writer, changes, answerOnce, authenticate } = options;

  registerRoute(app, contract.rollBack, {
    authenticate,
    handle: (input, principal) =>
      writer((write) =>
        answerOnce(write, contract.rollBack, input, principal, async () => {
          const { params, request } = input;
          const { key } = principal;
          const rolledBack = await changes.rollBack(write, {
            place: { ...key, flagId: params.flagId, environmentId: params.envId },
            author: authorOf(key),
            permit: ({ state }) =>
              checkKeyEnvironment(key, state.environmentId) ??
              checkIfMatch(request.ifMatch, state, pathOfState(state)),
          });
          if (isRefusal(rolledBack)) return rolledBack;
          const { state, restored } = rolledBack;
          const rolledBackTo = restored.changedAt.toISOString();
          return answer.ok(
            {
              message: `The flag is back in its state of ${rolledBackTo}.`,
              enabled: state.enabled,
              rollout_percentage: state.rolloutPercentage,
              rolled_back_to: rolledBackTo,
            },
            { etag: etagOf(state) },
          );
        }),
      ),
  });
}
