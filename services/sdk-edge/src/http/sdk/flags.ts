import { sdkGetFlags, sdkPostFlags } from "@halyard/contracts";
import { emptyContext } from "@halyard/evaluation";
import { isProblem } from "@halyard/http";
import type { FlagValues } from "../../answers/flag-values.ts";
import { readUserContext } from "../../context/user-context.ts";
import type { EdgeParts } from "../edge-parts.ts";
import type { EdgeRoute } from "../edge-route.ts";
import type { SdkExchange } from "../hot-path.ts";

/** The routes for the values of all flags for one user. */
export function flagsRoutes(parts: EdgeParts): EdgeRoute[] {
  return [sdkGetFlags, sdkPostFlags].map((contract) => ({
    contract,
    name: "flags",
    authenticate: parts.byBearer,
    respond: (exchange) => respond(parts, exchange),
  }));
}

function respond({ views, evaluation, usage }: EdgeParts, exchange: SdkExchange): void {
  const context = readUserContext(exchange);
  if (isProblem(context)) {
    exchange.reject(context);
    return;
  }
  const { key, nowMs } = exchange;
  const view = views.of(key.environmentId);
  const answer = ({ etag, body }: FlagValues) => {
    usage?.answeredAll(key, nowMs);
    exchange.answerTagged(etag, body);
  };
  if (context === emptyContext) answer(view.valuesWithoutContext);
  else
    evaluation.all({ exchange, context, view }, (outcomeCodes) =>
      answer(view.valuesOf(outcomeCodes)),
    );
}
