import { sdkStream } from "@halyard/contracts";
import { emptyContext } from "@halyard/evaluation";
import { isProblem } from "@halyard/http";
import type { FlagValues } from "../../answers/flag-values.ts";
import { readUserContext } from "../../context/user-context.ts";
import type { Listener } from "../../streams/value-streams.ts";
import type { EdgeParts } from "../edge-parts.ts";
import type { EdgeRoute } from "../edge-route.ts";
import { hasLargeContext } from "../evaluation.ts";
import type { SdkExchange } from "../hot-path.ts";
import { takeSlot } from "../take-slot.ts";

/** The route for streams of the values of all flags for one user. */
export function streamRoute(parts: EdgeParts): EdgeRoute {
  return {
    contract: sdkStream,
    name: "stream",
    countsItself: true,
    authenticate: parts.byBearer,
    respond: (exchange) => respond(parts, exchange),
  };
}

function respond(parts: EdgeParts, exchange: SdkExchange): void {
  const { views, usage, evaluation } = parts;
  const { key, nowMs } = exchange;
  const context = readUserContext(exchange);
  if (isProblem(context)) {
    usage?.count(key, "stream", nowMs);
    exchange.reject(context);
    return;
  }
  takeSlot(exchange, parts, (open) => {
    const view = views.of(key.environmentId);
    const begin = (values: FlagValues) =>
      open(() => beginValues(parts, exchange, { context, view, values }));
    if (context === emptyContext) begin(view.valuesWithoutContext);
    else
      evaluation.all({ exchange, context, view }, (outcomeCodes) =>
        begin(view.valuesOf(outcomeCodes)),
      );
  });
}

type Evaluated = Pick<Listener, "context" | "view" | "values">;

function beginValues(
  { streams, usage }: EdgeParts,
  exchange: SdkExchange,
  evaluated: Evaluated,
): void {
  const { response, key, nowMs, lastEventId } = exchange;
  usage?.count(key, "stream", nowMs);
  exchange.beginStream();
  streams.values.open(response, {
    key,
    ...evaluated,
    hasLargeContext: hasLargeContext(exchange),
    lastEventId,
  });
  usage?.answeredAll(key, nowMs);
}
