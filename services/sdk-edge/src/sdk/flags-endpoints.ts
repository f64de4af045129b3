import { sdkGetFlags, sdkPostFlags } from "@halyard/contracts";
import { emptyContext } from "@halyard/evaluation";
import { isRefusal, type Refusal } from "@halyard/service";
import { readUserContext } from "../context/user-context.ts";
import type { FlagValues } from "../environment/flag-values.ts";
import { byBearer } from "./by-bearer.ts";
import { answerRefusal, type Endpoint, type Exchange } from "./endpoint.ts";
import { answerFlags } from "./flags-answer.ts";
import type { SdkParts } from "./sdk-parts.ts";

/** All flags' values for whoever asks, by either method. */
export function flagsEndpoints(parts: SdkParts): Endpoint[] {
  const shared = {
    name: "flags" as const,
    authenticate: byBearer(parts),
    respond: (exchange: Exchange) => respond(parts, exchange),
  };
  return [sdkGetFlags, sdkPostFlags].map(({ method, path }) => ({
    ...shared,
    method: method as Endpoint["method"],
    path,
  }));
}

function respond({ views, counts, evaluation, usage }: SdkParts, exchange: Exchange): void {
  const { request, response, key, query, body, nowMs } = exchange;
  const refuse = (refusal: Refusal) => {
    answerRefusal(exchange, refusal);
    counts.count("flags", response.statusCode);
  };
  const context = readUserContext({ headers: request.headers, query, body });
  if (isRefusal(context)) {
    refuse(context);
    return;
  }
  const view = views.of(key.environmentId);
  const answer = (values: FlagValues) => {
    usage?.answeredAll(key, nowMs);
    counts.count("flags", answerFlags(exchange, values));
  };
  if (context === emptyContext) answer(view.valuesForNobody);
  else
    evaluation.all({ exchange, context, view, refuse }, (outcomeNumbers) =>
      answer(view.valuesOf(outcomeNumbers)),
    );
}
