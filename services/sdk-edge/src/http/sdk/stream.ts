import { sdkStream } from "@halyard/contracts";
import { compileInputChecks, isProblem, type Problem } from "@halyard/http";
import { asBooleans, inTheirTypes } from "../../answers/value-form.ts";
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
  const input = readInput(exchange);
  if (isProblem(input)) {
    usage?.count(key, "stream", nowMs);
    exchange.reject(input);
    return;
  }
  const { form, context } = input;
  takeSlot(exchange, parts, (open) => {
    const view = views.of(key.environmentId);
    evaluation.values({ exchange, context, view }, form, (values) =>
      open(() => beginValues(parts, exchange, { context, view, form, values })),
    );
  });
}

type Input = Pick<Listener, "form" | "context">;

const checks = compileInputChecks(sdkStream);

function readInput(exchange: SdkExchange): Input | Problem {
  const query = checks.query(exchange.query, exchange.target);
  if (isProblem(query)) return query;
  const context = readUserContext(exchange);
  if (isProblem(context)) return context;
  return { form: query.value.values === true ? inTheirTypes : asBooleans, context };
}

type Evaluated = Pick<Listener, "context" | "view" | "form" | "values">;

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
