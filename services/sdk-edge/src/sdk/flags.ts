import { sdkGetFlags, sdkPostFlags } from "@halyard/contracts";
import { emptyContext } from "@halyard/evaluation";
import { isProblem } from "@halyard/service";
import { readUserContext } from "../context/user-context.ts";
import type { FlagValues } from "../environment/flag-values.ts";
import type { Exchange } from "../http/exchange.ts";
import type { EdgeRoute } from "../http/routes.ts";
import type { SdkParts } from "./sdk-parts.ts";

/** The routes for the values of all flags for one user. */
export function flagsRoutes(parts: SdkParts): EdgeRoute[] {
  return [sdkGetFlags, sdkPostFlags].map((contract) => ({
    contract,
    name: "flags",
    authenticate: parts.byBearer,
    respond: (exchange) => respond(parts, exchange),
  }));
}

function respond({ views, evaluation, usage }: SdkParts, exchange: Exchange): void {
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
