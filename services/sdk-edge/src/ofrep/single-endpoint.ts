import { type OfrepError, ofrepEvaluateFlag, ofrepFlagKey } from "@halyard/contracts";
import type { Refusal } from "@halyard/service";
import { readOfrepContext } from "../context/ofrep-context.ts";
import { answerJson, answerRefusal, type Endpoint, type Exchange } from "../sdk/endpoint.ts";
import { answerProblem } from "./answer-problem.ts";
import { byEitherHeader } from "./by-either-header.ts";
import { evaluationJson } from "./evaluation-json.ts";
import { ofrepHeaders } from "./ofrep-headers.ts";
import type { OfrepParts } from "./ofrep-parts.ts";

/** One flag's evaluation, as the server providers ask for it. */
export function singleEndpoint(parts: OfrepParts): Endpoint {
  return {
    method: "POST",
    path: ofrepEvaluateFlag.path,
    name,
    authenticate: byEitherHeader(parts),
    respond: (exchange) => respond(parts, exchange),
  };
}

const name = "ofrep_flag";

const flagNotFound: OfrepError = {
  errorCode: "FLAG_NOT_FOUND",
  errorDetails: "There is no flag with this key",
};

function respond({ views, counts, evaluation, usage }: OfrepParts, exchange: Exchange): void {
  const context = readOfrepContext(exchange.body);
  if ("errorCode" in context) {
    answerProblem(exchange, 400, context);
    counts.count(name, 400);
    return;
  }
  const view = views.of(exchange.key.environmentId);
  const found = view.find(ofrepFlagKey(exchange.request.url ?? "") ?? "");
  if (found === undefined) {
    answerProblem(exchange, 404, flagNotFound);
    counts.count(name, 404);
    return;
  }
  const { entry, flag } = found;
  const refuse = (refusal: Refusal) => {
    answerRefusal(exchange, refusal);
    counts.count(name, exchange.response.statusCode);
  };
  evaluation.one({ exchange, context, view, refuse }, flag, (outcome) => {
    usage?.answeredOne(exchange.key, entry.flag_id, exchange.nowMs);
    answerJson(exchange, 200, { body: evaluationJson(flag.key, outcome), headers: ofrepHeaders });
    counts.count(name, 200);
  });
}
