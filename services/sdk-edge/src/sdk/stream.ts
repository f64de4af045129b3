import { sdkStream } from "@halyard/contracts";
import { emptyContext } from "@halyard/evaluation";
import { isProblem } from "@halyard/service";
import { readUserContext } from "../context/user-context.ts";
import type { FlagValues } from "../environment/flag-values.ts";
import type { Exchange } from "../http/exchange.ts";
import type { EdgeRoute } from "../http/routes.ts";
import type { Listener } from "../streams/stream-hub.ts";
import { hasLargeContext } from "./evaluation.ts";
import type { SdkParts } from "./sdk-parts.ts";
import { edgeIsStopping, takeSlot } from "./take-slot.ts";

/** The route for streams of the values of all flags for one user. */
export function streamRoute(parts: SdkParts): EdgeRoute {
  return {
    contract: sdkStream,
    name: "stream",
    countsItself: true,
    authenticate: (exchange) => (parts.isDraining() ? edgeIsStopping : parts.byBearer(exchange)),
    respond: (exchange) => respond(parts, exchange),
  };
}

function respond(parts: SdkParts, exchange: Exchange): void {
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

function beginValues({ hub, usage }: SdkParts, exchange: Exchange, evaluated: Evaluated): void {
  const { response, key, nowMs, lastEventId } = exchange;
  usage?.count(key, "stream", nowMs);
  exchange.beginStream();
  hub.open(response, {
    key,
    ...evaluated,
    hasLargeContext: hasLargeContext(exchange),
    lastEventId,
  });
  usage?.answeredAll(key, nowMs);
}
