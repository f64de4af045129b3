import {
  type EvaluationResult,
  type FlagEntry,
  sdkGetEvaluate,
  sdkPostEvaluate,
} from "@halyard/contracts";
import type { EvaluationContext, Explanation, Outcome } from "@halyard/evaluation";
import {
  compileInputChecks,
  createProblem,
  isProblem,
  type Problem,
  RawJson,
  stringify,
} from "@halyard/http";
import { readUserContext } from "../../context/user-context.ts";
import type { EdgeParts } from "../edge-parts.ts";
import type { EdgeRoute } from "../edge-route.ts";
import type { SdkExchange } from "../hot-path.ts";

/** The routes for the value of one flag for one user, and the reason for the value. */
export function evaluateRoutes(parts: EdgeParts): EdgeRoute[] {
  return [sdkGetEvaluate, sdkPostEvaluate].map((contract) => ({
    contract,
    name: "evaluate",
    authenticate: parts.byBearer,
    respond: (exchange) => respond(parts, exchange),
  }));
}

function respond({ views, evaluation, usage }: EdgeParts, exchange: SdkExchange): void {
  const input = readInput(exchange);
  if (isProblem(input)) {
    exchange.reject(input);
    return;
  }
  const { key, context } = input;
  const view = views.of(exchange.key.environmentId);
  const found = view.find(key);
  if (found === undefined) {
    exchange.reject(noSuchFlag);
    return;
  }
  const { entry, compiled } = found;
  const answer = (text: string, variation: number | undefined) => {
    usage?.answeredOne(exchange.key, entry.flag_id, exchange.nowMs, found.variationKey(variation));
    exchange.answerJson(200, text);
  };
  const subject = { exchange, context, view };
  if (input.isExplained)
    evaluation.explained(subject, found, (explanation) =>
      answer(explained(entry, explanation), explanation.served?.index),
    );
  else
    evaluation.one(subject, compiled, ({ outcome, variation }) =>
      answer(
        variation === undefined
          ? JSON.stringify({ key, ...outcome } satisfies EvaluationResult)
          : stringify({ key, ...typedResult(entry, outcome, variation) }),
        variation,
      ),
    );
}

type Input = { key: string; context: EvaluationContext; isExplained: boolean };

/** The checks of the query, which is the same for both routes. */
const checks = compileInputChecks(sdkGetEvaluate);

function readInput(exchange: SdkExchange): Input | Problem {
  const query = checks.query(exchange.query, exchange.target);
  if (isProblem(query)) return query;
  const isExplained = query.value.explain === true;
  if (isExplained && exchange.key.kind === "client") return rulesAreForServers;
  const context = readUserContext(exchange);
  return isProblem(context) ? context : { key: query.value.key, context, isExplained };
}

/** Returns the members of the result of a typed flag. The value keeps its text. */
function typedResult({ variations }: FlagEntry, { reason }: Outcome, index: number) {
  const variation = variations?.[index];
  return {
    value: variation === undefined ? null : new RawJson(variation.json),
    variation: variation?.key ?? null,
    reason,
  };
}

function explained(entry: FlagEntry, { requires, rules, served, ...outcome }: Explanation): string {
  const { key, enabled, rollout_percentage } = entry;
  const result = served === undefined ? outcome : typedResult(entry, outcome, served.index);
  const { serve, bucket } = served ?? {};
  return stringify({
    key,
    ...result,
    trace: { enabled, rollout_percentage, requires, rules, serve, bucket },
  });
}

const noSuchFlag = createProblem("NOT_FOUND_001", "There is no flag with this key");
const rulesAreForServers = createProblem(
  "AUTH_002",
  "explain=true shows the flag's rules: it needs a reader or server key",
);
