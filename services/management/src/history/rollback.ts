import { checkKeyEnvironment } from "@halyard/api-keys";
import * as contract from "@halyard/contracts";
import { type App, answer, isRefusal, type Refusal, refuse, registerRoute } from "@halyard/service";
import { authorOf, type ChangeContext } from "../access/change-context.ts";
import type { AuthenticateKey } from "../access/principal.ts";
import { decideChange } from "../flags/decide-flag.ts";
import type { Decision, Flag, FlagEnvironment, FlagState, HistoryEntry } from "../flags/flag.ts";
import type { FlagChanges } from "../flags/flag-changes.ts";
import { checkIfMatch, etagOf, pathOfState } from "../flags/flag-resource.ts";
import type { AnswerOnce } from "../idempotency/answer-once.ts";
import type { Writer } from "../outbox/write.ts";
import { readNewestEntries } from "./history-store.ts";

/** What follows from going back, and the entry of the history that is in effect again. */
export type RollbackDecision = Decision & { state: FlagState; restored: HistoryEntry };

/**
 * The way back: the state that stood before the newest entry becomes the present one, as a change
 * like any other, with an entry of its own. So going back twice leads to where one was.
 */
export function decideRollback(
  current: { flag: Flag; state: FlagState; environment: FlagEnvironment },
  newestFirst: readonly HistoryEntry[],
  context: ChangeContext,
): RollbackDecision | Refusal {
  const [, restored] = newestFirst;
  if (restored === undefined) return nothingBefore;
  const decision = decideChange(
    current,
    {
      enabled: restored.enabled,
      rollout_percentage: restored.rolloutPercentage,
      targeting_rules: [...restored.targetingRules],
    },
    context,
  );
  // Every entry differs from the one before it, unless somebody wrote into the tables by hand.
  if (decision === "unchanged") return nothingBefore;
  return { ...decision, restored };
}

const nothingBefore = refuse(
  "CONFLICT_002",
  "There is nothing to roll back to: the state has been like this from the beginning.",
);

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
          const rolledBack = await changes.decide(
            write,
            {
              place: { ...key, flagId: params.flagId, environmentId: params.envId },
              author: authorOf(key),
              cause: "rollback",
              permit: ({ state }) =>
                checkKeyEnvironment(key, state.environmentId) ??
                checkIfMatch(request.ifMatch, state, pathOfState(state)),
            },
            async (current, context) => {
              const newestFirst = await readNewestEntries(write.tx, current.state, 2);
              return decideRollback(current, newestFirst, context);
            },
          );
          if (isRefusal(rolledBack)) return rolledBack;
          const { state, restored } = rolledBack.decision;
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
