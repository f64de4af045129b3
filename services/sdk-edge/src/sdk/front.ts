import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { sdkGetFlags, sdkStream } from "@halyard/contracts";
import { type App, createRequestIds } from "@halyard/service";
import { answerPreflight, isPreflight, sdkPrefix, setCorsHeaders } from "./cors.ts";
import { keyOf, respondWithFlags, respondWithStream, type SdkParts } from "./sdk-requests.ts";

/**
 * Stands before the framework and answers what is asked all the time: all flags, and the stream, with
 * a key that works and nothing else to look at. That takes a fraction of the framework's time, and an
 * open stream holds on to none of its objects. Everything else goes on to the framework's routes,
 * which answer the same requests with the same functions and know all the ways to refuse one.
 */
export function putInFront(app: App, parts: SdkParts): void {
  const front = createFront(parts, {
    requestId: createRequestIds(),
    onward: (request, response) => app.routing(request, response),
  });
  app.server.removeAllListeners("request");
  app.server.on("request", front);
}

type Onward = {
  requestId: (request: IncomingMessage) => string;
  onward: RequestListener;
};

function createFront(parts: SdkParts, { requestId, onward }: Onward): RequestListener {
  return (request, response) => {
    if (answerOrdinary(parts, request, response, requestId)) return;
    const isSdkRequest = request.url?.startsWith(sdkPrefix) === true;
    if (isSdkRequest && isPreflight(request)) {
      answerPreflight(request, response);
      return;
    }
    if (isSdkRequest) setCorsHeaders(response);
    if (parts.isDraining()) response.setHeader("Connection", "close");
    onward(request, response);
  };
}

function answerOrdinary(
  parts: SdkParts,
  request: IncomingMessage,
  response: ServerResponse,
  requestId: (request: IncomingMessage) => string,
): boolean {
  const { method, url, headers } = request;
  if (method !== "GET" || (url !== sdkGetFlags.path && url !== sdkStream.path)) return false;
  // While draining, and without Host, the framework has more to say.
  if (parts.isDraining() || headers.host === undefined) return false;
  const key = keyOf(parts, headers);
  if (key === undefined) return false;
  const exchange = { request, response, id: requestId(request) };
  if (url === sdkGetFlags.path) respondWithFlags(parts, key, exchange);
  else respondWithStream(parts, key, exchange);
  return true;
}
