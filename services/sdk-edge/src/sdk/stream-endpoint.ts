import { sdkStream } from "@halyard/contracts";
import { emptyContext } from "@halyard/evaluation";
import { isRefusal, type Refusal } from "@halyard/service";
import { readUserContext } from "../context/user-context.ts";
import type { FlagValues } from "../environment/flag-values.ts";
import type { Listener } from "../streams/stream-hub.ts";
import { beginStream, elsewhere } from "./begin-stream.ts";
import { byBearer } from "./by-bearer.ts";
import { isLargeContext } from "./context-bytes.ts";
import { answerRefusal, type Endpoint, type Exchange } from "./endpoint.ts";
import type { SdkParts } from "./sdk-parts.ts";
import { takeSlot } from "./take-slot.ts";

/** The values as they change. */
export function streamEndpoint(parts: SdkParts): Endpoint {
  const authenticate = byBearer(parts);
  return {
    method: "GET",
    path: sdkStream.path,
    name,
    countsItself: true,
    isStream: true,
    authenticate: (asked) => (parts.isDraining() ? elsewhere : authenticate(asked)),
    respond: (exchange) => respond(parts, exchange),
  };
}

const name = "stream";

function respond(parts: SdkParts, exchange: Exchange): void {
  const { views, counts, usage, evaluation } = parts;
  const { request, response, key, query, nowMs } = exchange;
  const refuse = (refusal: Refusal) => {
    answerRefusal(exchange, refusal);
    counts.count(name, response.statusCode);
  };
  const context = readUserContext({ headers: request.headers, query, body: undefined });
  if (isRefusal(context)) {
    usage?.count(key, name, nowMs);
    refuse(context);
    return;
  }
  takeSlot(exchange, parts, {
    refuse,
    given(open) {
      const view = views.of(key.environmentId);
      const begin = (values: FlagValues) =>
        open(() => beginValues(parts, exchange, { context, view, values }));
      if (context === emptyContext) begin(view.valuesForNobody);
      else
        evaluation.all({ exchange, context, view, refuse }, (outcomeNumbers) =>
          begin(view.valuesOf(outcomeNumbers)),
        );
    },
  });
}

type Evaluated = Pick<Listener, "context" | "view" | "values">;

function beginValues({ hub, counts, usage }: SdkParts, exchange: Exchange, told: Evaluated): void {
  const { request, response, key, query, nowMs } = exchange;
  usage?.count(key, name, nowMs);
  beginStream(exchange);
  const given = request.headers["last-event-id"];
  const lastEventId = typeof given === "string" ? given : undefined;
  const hasLargeContext = isLargeContext(request, query);
  hub.open(response, { key, ...told, hasLargeContext, lastEventId });
  usage?.answeredAll(key, nowMs);
  counts.count(name, response.statusCode);
}
