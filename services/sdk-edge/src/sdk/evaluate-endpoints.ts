import {
  compileCheck,
  EvaluateQuery,
  type EvaluationResult,
  type FlagEntry,
  sdkGetEvaluate,
  sdkPostEvaluate,
} from "@halyard/contracts";
import type { EvaluationContext, Explanation } from "@halyard/evaluation";
import { isRefusal, type Refusal, refuse } from "@halyard/service";
import { readUserContext } from "../context/user-context.ts";
import { byBearer } from "./by-bearer.ts";
import { answerJson, answerRefusal, type Endpoint, type Exchange } from "./endpoint.ts";
import { sdkHeaders } from "./flags-answer.ts";
import { readQuery } from "./query-parameters.ts";
import type { SdkParts } from "./sdk-parts.ts";

/** One flag's value for whoever asks, and why it is that. */
export function evaluateEndpoints(parts: SdkParts): Endpoint[] {
  const shared = {
    name: "evaluate" as const,
    authenticate: byBearer(parts),
    respond: (exchange: Exchange) => respond(parts, exchange),
  };
  return [sdkGetEvaluate, sdkPostEvaluate].map(({ method, path }) => ({
    ...shared,
    method: method as Endpoint["method"],
    path,
  }));
}

function respond(parts: SdkParts, exchange: Exchange): void {
  const answer = (result: EvaluationResult | Refusal) => {
    if (isRefusal(result)) answerRefusal(exchange, result);
    else answerJson(exchange, 200, { body: JSON.stringify(result), headers: sdkHeaders });
    parts.counts.count("evaluate", exchange.response.statusCode);
  };
  const question = readQuestion(exchange);
  if (isRefusal(question)) {
    answer(question);
    return;
  }
  const { key, context } = question;
  const view = parts.views.of(exchange.key.environmentId);
  const found = view.find(key);
  if (found === undefined) {
    answer(noSuchFlag);
    return;
  }
  const { entry, flag } = found;
  const answerEvaluated = (result: EvaluationResult) => {
    parts.usage?.answeredOne(exchange.key, entry.flag_id, exchange.nowMs);
    answer(result);
  };
  const subject = { exchange, context, view, refuse: answer };
  if (!question.isExplained) {
    parts.evaluation.one(subject, flag, (outcome) => answerEvaluated({ key, ...outcome }));
    return;
  }
  parts.evaluation.explained(subject, entry, (explanation) =>
    answerEvaluated(explanationResult(entry, explanation)),
  );
}

const checkQuery = compileCheck(EvaluateQuery);

type Question = { key: string; context: EvaluationContext; isExplained: boolean };

function readQuestion({ request, query, body, key }: Exchange): Question | Refusal {
  const parameters = readQuery(query, ["key", "explain"]);
  if (isRefusal(parameters)) return parameters;
  const explain = parameters.get("explain");
  const checked = checkQuery({
    ...(parameters.has("key") ? { key: parameters.get("key") } : {}),
    ...(explain === undefined ? {} : { explain: booleans.get(explain) ?? explain }),
  });
  if (!checked.ok) return refuse("VALIDATION_001", `query parameter ${checked.problem}`);
  const isExplained = checked.value.explain === true;
  if (isExplained && key.kind !== "server") return rulesAreForServers;
  const context = readUserContext({ headers: request.headers, query, body });
  return isRefusal(context) ? context : { key: checked.value.key, context, isExplained };
}

const booleans = new Map([
  ["true", true],
  ["false", false],
]);

function explanationResult(
  { key, enabled, rollout_percentage }: FlagEntry,
  { rules, ...outcome }: Explanation,
): EvaluationResult {
  return { key, ...outcome, trace: { enabled, rollout_percentage, rules } };
}

const noSuchFlag = refuse("NOT_FOUND_001", "There is no flag with this key");
const rulesAreForServers = refuse(
  "AUTH_002",
  "explain=true shows the flag's rules: it needs a server key",
);
