import type { DirectoryKey } from "@halyard/api-keys";
import { ofrepStream } from "@halyard/contracts";
import { createProblem, isWellEncoded, type Problem } from "@halyard/http";
import type { EdgeParts } from "../edge-parts.ts";
import type { EdgeRoute } from "../edge-route.ts";
import type { SdkExchange } from "../hot-path.ts";
import { takeSlot } from "../take-slot.ts";
import type { StreamTokens } from "./stream-tokens.ts";

/** The route for streams of events that make OpenFeature clients evaluate again. A token in the URL authenticates. */
export function refetchStreamRoute(parts: EdgeParts, tokens: StreamTokens | undefined): EdgeRoute {
  const { usage, streams } = parts;
  return {
    contract: ofrepStream,
    name: "ofrep_stream",
    countsItself: true,
    authenticate: (exchange) => authenticate(exchange, tokens, parts),
    respond: (exchange) =>
      takeSlot(exchange, parts, (open) =>
        open(() => {
          const { response, key, nowMs, lastEventId } = exchange;
          usage?.count(key, "ofrep_stream", nowMs);
          exchange.beginStream();
          streams.refetches.open(response, { key, lastEventId });
        }),
      ),
  };
}

function authenticate(
  { query: { token }, target, nowMs }: SdkExchange,
  tokens: StreamTokens | undefined,
  { directory }: EdgeParts,
): DirectoryKey | Problem {
  if (!isWellEncoded(target)) return notUtf8;
  if (Array.isArray(token)) return givenTwice;
  if (typeof token !== "string") return unknownToken;
  const keyId = tokens?.keyIdOf(token, nowMs);
  return (keyId && directory.find(keyId, nowMs)) || unknownToken;
}

const notUtf8 = createProblem("VALIDATION_001", "the query string is not valid UTF-8");
const givenTwice = createProblem("VALIDATION_001", "query parameter /token must be given once");
const unknownToken = createProblem(
  "AUTH_001",
  "A valid stream token is needed: take the address from eventStreams of a bulk evaluation",
);
