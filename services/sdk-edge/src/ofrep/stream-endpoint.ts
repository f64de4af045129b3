import type { DirectoryKey } from "@halyard/api-keys";
import { ofrepStream } from "@halyard/contracts";
import { isRefusal, type Refusal, refuse } from "@halyard/service";
import { beginStream, elsewhere } from "../sdk/begin-stream.ts";
import { type Asked, answerRefusal, type Endpoint, type Exchange } from "../sdk/endpoint.ts";
import { readQuery } from "../sdk/query-parameters.ts";
import { takeSlot } from "../sdk/take-slot.ts";
import type { OfrepParts } from "./ofrep-parts.ts";

/** Where OpenFeature clients hear that they should ask again. What opens it is a token in its URL. */
export function refetchStreamEndpoint(parts: OfrepParts): Endpoint {
  return {
    method: "GET",
    path: ofrepStream.path,
    name,
    countsItself: true,
    isStream: true,
    authenticate: (asked) => (parts.isDraining() ? elsewhere : byToken(parts, asked)),
    respond: (exchange) => respond(parts, exchange),
  };
}

const name = "ofrep_stream";

const unknownToken = refuse(
  "AUTH_001",
  "A valid stream token is needed: take the address from eventStreams of a bulk evaluation",
);

function byToken({ tokens, directory, now }: OfrepParts, { query }: Asked): DirectoryKey | Refusal {
  const parameters = readQuery(query, ["token"]);
  if (isRefusal(parameters)) return parameters;
  const token = parameters.get("token");
  if (tokens === undefined || token === undefined) return unknownToken;
  const nowMs = now();
  const keyId = tokens.keyIdOf(token, nowMs);
  if (keyId === undefined) return unknownToken;
  return directory.find(keyId, nowMs) ?? unknownToken;
}

function respond(parts: OfrepParts, exchange: Exchange): void {
  const { refetchHub, counts, usage } = parts;
  const { request, response, key, nowMs } = exchange;
  takeSlot(exchange, parts, {
    refuse(refusal) {
      answerRefusal(exchange, refusal);
      counts.count(name, response.statusCode);
    },
    given: (open) =>
      open(() => {
        usage?.count(key, name, nowMs);
        beginStream(exchange);
        const lastEventId = request.headers["last-event-id"];
        refetchHub.open(response, {
          key,
          lastEventId: typeof lastEventId === "string" ? lastEventId : undefined,
        });
        counts.count(name, response.statusCode);
      }),
  });
}
