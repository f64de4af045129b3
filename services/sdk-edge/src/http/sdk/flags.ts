import { sdkGetFlags, sdkGetValues, sdkPostFlags, sdkPostValues } from "@halyard/contracts";
import { isProblem } from "@halyard/http";
import { asBooleans, inTheirTypes, type ValueForm } from "../../answers/value-form.ts";
import { readUserContext } from "../../context/user-context.ts";
import type { EdgeParts } from "../edge-parts.ts";
import type { EdgeRoute } from "../edge-route.ts";
import type { SdkExchange } from "../hot-path.ts";

/** The routes for the values of all flags for one user: as booleans, and in their types. */
export function flagsRoutes(parts: EdgeParts): EdgeRoute[] {
  const routeOf = (contract: EdgeRoute["contract"], form: ValueForm): EdgeRoute => ({
    contract,
    name: form.name,
    authenticate: parts.byBearer,
    respond: (exchange) => respond(parts, exchange, form),
  });
  return [
    routeOf(sdkGetFlags, asBooleans),
    routeOf(sdkPostFlags, asBooleans),
    routeOf(sdkGetValues, inTheirTypes),
    routeOf(sdkPostValues, inTheirTypes),
  ];
}

function respond(
  { views, evaluation, usage }: EdgeParts,
  exchange: SdkExchange,
  form: ValueForm,
): void {
  const context = readUserContext(exchange);
  if (isProblem(context)) {
    exchange.reject(context);
    return;
  }
  const { key, nowMs } = exchange;
  const view = views.of(key.environmentId);
  evaluation.values({ exchange, context, view }, form, (values) => {
    usage?.answeredAll(key, nowMs);
    exchange.answerTagged(values.etag, () => values.body);
  });
}
