import type { DirectoryKey } from "@halyard/api-keys";
import {
  sdkGetEvaluate,
  sdkGetFlags,
  sdkPostEvaluate,
  sdkPostFlags,
  sdkStream,
} from "@halyard/contracts";
import { type Answer, type App, type Refusal, refuse, registerRoute } from "@halyard/service";
import { sdkCacheControl, sdkVary } from "./flags-answer.ts";
import { registerRawRoute } from "./raw-route.ts";
import {
  authenticate,
  respondWithFlags,
  respondWithStream,
  type SdkParts,
} from "./sdk-requests.ts";

/** Registers every SDK route: what SDKs may ask for, and what each is answered. */
export function registerSdkRoutes(app: App, parts: SdkParts): void {
  const admit = (request: { headers: SdkHeaders }) => authenticate(parts, request.headers);

  registerRawRoute(app, sdkGetFlags, {
    authenticate: admit,
    respond: (key, exchange) => respondWithFlags(parts, key, exchange),
  });
  registerRawRoute(app, sdkPostFlags, {
    authenticate: admit,
    respond: (key, exchange) => respondWithFlags(parts, key, exchange),
  });
  registerRawRoute(app, sdkStream, {
    authenticate: (request) => (parts.isDraining() ? elsewhere : admit(request)),
    respond: (key, exchange) => respondWithStream(parts, key, exchange),
  });
  registerRoute(app, sdkGetEvaluate, {
    authenticate: admit,
    handle: ({ query }, key) => evaluate(parts, key, query.key),
  });
  registerRoute(app, sdkPostEvaluate, {
    authenticate: admit,
    handle: ({ query }, key) => evaluate(parts, key, query.key),
  });
}

type SdkHeaders = Parameters<typeof authenticate>[1];

const elsewhere = refuse("SERVER_002", "This edge is about to stop; connect again");

function evaluate(parts: SdkParts, key: DirectoryKey, flagKey: string): Answer | Refusal {
  const outcome = parts.views.of(key.environmentId).outcomes.get(flagKey);
  if (outcome === undefined) return refuse("NOT_FOUND_001", "There is no flag with this key");
  parts.counts.evaluate[200] += 1;
  return {
    status: 200,
    body: { key: flagKey, ...outcome },
    headers: { "cache-control": sdkCacheControl, vary: sdkVary },
  };
}
