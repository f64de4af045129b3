import type { IncomingMessage } from "node:http";

/**
 * Filters the headers that are forwarded, which are lists of name, value, name, value, as in Node. All headers are
 * forwarded with their name, case, order and repetition, except those that concern one connection only. Headers about
 * the origin of the request are forwarded only from a trusted proxy.
 */
type RawHeaders = string[];

const ofOneConnection = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Headers of a request that are not forwarded. The gateway has answered `Expect`, and sets `X-Request-Id` itself. */
const ofOneRequest = new Set([...ofOneConnection, "expect", "x-request-id"]);

const ofTheSender = new Set([
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-prefix",
  "x-forwarded-proto",
  "x-real-ip",
]);

/** Methods whose requests usually have a body. Without a body, they state a length of zero. */
const methodsWithBody = new Set(["POST", "PUT", "PATCH"]);

type Forwarding = { requestId: string; peer: string; peerIsTrusted: boolean };

export function requestHeaders(request: IncomingMessage, forwarding: Forwarding): RawHeaders {
  const { headers } = request;
  const forwarded = filtered(request.rawHeaders, (name) => {
    if (ofOneRequest.has(name) || isNamedBy(headers.connection, name)) return false;
    return name !== "x-forwarded-for" && (forwarding.peerIsTrusted || !ofTheSender.has(name));
  });
  const before = forwarding.peerIsTrusted ? headers["x-forwarded-for"] : undefined;
  const chain = before === undefined ? forwarding.peer : `${before}, ${forwarding.peer}`;
  forwarded.push("X-Forwarded-For", chain, "X-Request-Id", forwarding.requestId);
  // HTTP/1.0 does not require Host, but the forwarded request is HTTP/1.1, which does.
  if (headers.host === undefined) forwarded.push("Host", "halyard");
  // The framing of the body is always explicit. If one side took bytes for a body and the other did not, they would be
  // read as the next request (request smuggling).
  if (headers["transfer-encoding"] !== undefined) forwarded.push("Transfer-Encoding", "chunked");
  else if (headers["content-length"] === undefined && methodsWithBody.has(request.method ?? ""))
    forwarded.push("Content-Length", "0");
  return forwarded;
}

export function responseHeaders(response: IncomingMessage): RawHeaders {
  const { connection } = response.headers;
  return filtered(
    response.rawHeaders,
    (name) => !ofOneConnection.has(name) && !isNamedBy(connection, name),
  );
}

function filtered(raw: readonly string[], passes: (name: string) => boolean): RawHeaders {
  const forwarded: RawHeaders = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] as string;
    if (passes(name.toLowerCase())) forwarded.push(name, raw[index + 1] as string);
  }
  return forwarded;
}

/** Headers named in `Connection` belong to that connection too. Framing headers and Host are never removed this way. */
function isNamedBy(connection: string | undefined, name: string): boolean {
  if (connection === undefined || connection.length < name.length) return false;
  if (name === "host" || name === "content-length") return false;
  return connection
    .toLowerCase()
    .split(",")
    .some((item) => item.trim() === name);
}

export function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers["content-length"];
  return headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0");
}
