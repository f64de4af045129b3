import { type OfrepError, ofrepEvaluateFlag } from "@halyard/contracts";
import { readOfrepContext } from "../../context/ofrep-context.ts";
import type { EdgeParts } from "../edge-parts.ts";
import type { EdgeRoute } from "../edge-route.ts";
import type { SdkExchange } from "../hot-path.ts";
import { answerProblem, evaluationJson, typedEvaluationJson } from "./evaluation-json.ts";

/** The contract, with a wildcard for the flag's key, which can contain slashes. */
const contract = { ...ofrepEvaluateFlag, path: ofrepEvaluateFlag.path.replace(/:\w+$/, "*") };

/** The route for the evaluation of one flag, which server providers request. */
export function singleRoute(parts: EdgeParts): EdgeRoute {
  return {
    contract,
    name: "ofrep_flag",
    authenticate: parts.byEitherHeader,
    respond: (exchange) => respond(parts, exchange),
  };
}

const flagNotFound: OfrepError = {
  errorCode: "FLAG_NOT_FOUND",
  errorDetails: "There is no flag with this key",
};

function respond({ views, evaluation, usage }: EdgeParts, exchange: SdkExchange): void {
  const context = readOfrepContext(exchange.body);
  if ("errorCode" in context) {
    answerProblem(exchange, 400, context);
    return;
  }
  const view = views.of(exchange.key.environmentId);
  const found = view.find(exchange.params["*"] ?? "");
  if (found === undefined) {
    answerProblem(exchange, 404, flagNotFound);
    return;
  }
  const { entry, compiled } = found;
  evaluation.one({ exchange, context, view }, compiled, ({ outcome, variation, unmet }) => {
    usage?.answeredOne(exchange.key, entry.flag_id, exchange.nowMs, found.variationKey(variation));
    if (variation === undefined)
      exchange.answerJson(200, evaluationJson(entry.key, outcome, unmet));
    else
      exchange.answerByteString(
        typedEvaluationJson(entry, found.variationAt(variation), { outcome, unmet }),
      );
  });
}
