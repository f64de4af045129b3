import type { ServerResponse } from "node:http";
import { errorBodyFor, errorCodes } from "@halyard/contracts";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { type Refusal, refuse } from "./answer.ts";
import { anyOriginHeaders, isOpenToAllOrigins } from "./any-origin.ts";
import { appSettings } from "./app-settings.ts";
import { BodyEncodingError, BodySyntaxError, bodyTooLarge, notJson } from "./json-body.ts";
import { defaultRetryAfterSeconds, retryAfterOf } from "./unavailable-error.ts";

/** Turns everything that can go wrong with a request into an error body of the shape that its path has. */
export const jsonType = "application/json; charset=utf-8";

export const nothingHere = refuse("NOT_FOUND_001", "There is nothing at this address");

/** Headers that a refusal of a request for this target always has, and its own. */
function headersOf(refusal: Refusal, target = ""): Record<string, string> {
  const headers: Record<string, string> = { "content-type": jsonType };
  if (isOpenToAllOrigins(target)) Object.assign(headers, anyOriginHeaders);
  if (refusal.refused === "AUTH_001") headers["www-authenticate"] = "Bearer";
  if (refusal.refused === "SERVER_002") headers["retry-after"] = "1";
  return { ...headers, ...refusal.headers };
}

/** Sets the headers that every answer of the framework has. */
export function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header("x-request-id", request.id);
  // Keeps a browser from reading an answer as another type than its `Content-Type`.
  reply.header("x-content-type-options", "nosniff");
  if (appSettings(request.server).draining) reply.header("connection", "close");
}

export function sendRefusal(reply: FastifyReply, refusal: Refusal): FastifyReply {
  const { url } = reply.request.raw;
  return reply
    .code(errorCodes[refusal.refused].status)
    .headers(headersOf(refusal, url))
    .send(bodyOf(refusal, url));
}

/** The same for code that writes to the response itself. */
export function writeRefusal(
  response: ServerResponse,
  refusal: Refusal,
  extraHeaders: Readonly<Record<string, string>> = {},
): void {
  const { url } = response.req;
  const body = Buffer.from(bodyOf(refusal, url));
  response.writeHead(errorCodes[refusal.refused].status, {
    ...extraHeaders,
    ...headersOf(refusal, url),
    "content-length": body.length,
  });
  response.end(body);
}

function bodyOf({ refused, message }: Refusal, target = ""): string {
  return JSON.stringify(errorBodyFor(target, refused, message));
}

/** Errors of the framework that are the caller's doing. */
const callersErrors: Readonly<Record<string, Refusal>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: bodyTooLarge,
  FST_ERR_CTP_INVALID_MEDIA_TYPE: notJson,
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: refuse(
    "VALIDATION_001",
    "The body is not as long as Content-Length says",
  ),
};

const bodyBrokenOff = refuse("VALIDATION_001", "The body did not arrive completely");

/** Tells the failures of a part that is away from faults of the program. */
export type IsOutage = (error: unknown) => boolean;

/**
 * What an error that was thrown on the way is answered with. Undefined: it is our fault. The caller's
 * own errors come first: a connection that the caller breaks off looks like one that a part broke off.
 */
function refusalOf(
  error: unknown,
  request: FastifyRequest,
  isOutage: IsOutage,
): Refusal | undefined {
  if (error instanceof BodySyntaxError) return refuse("VALIDATION_001", error.message);
  if (error instanceof BodyEncodingError) return refuse("VALIDATION_003", error.message);
  if (request.raw.readableAborted) return bodyBrokenOff;
  const known = callersErrors[(error as Partial<FastifyError> | undefined)?.code ?? ""];
  if (known !== undefined) return known;
  const retryAfterSeconds = isOutage(error) ? defaultRetryAfterSeconds : retryAfterOf(error);
  if (retryAfterSeconds === undefined) return undefined;
  return refuse("SERVER_002", "A part that this call needs is away; try again", {
    "retry-after": String(Math.max(1, Math.ceil(retryAfterSeconds))),
  });
}

export function answerError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  isOutage: IsOutage = () => false,
): void {
  // An unknown route is unknown, whatever is wrong with the body that was sent there.
  if (request.is404) {
    sendRefusal(reply, nothingHere);
    return;
  }
  // The framework would close the connection after a body that it did not read to its end. Closing
  // over unread bytes resets the connection, and the caller, or a gateway, might never see the
  // answer; Node drops the rest of the body instead, for as long as a request may take to arrive.
  const { draining, logger } = appSettings(request.server);
  if (reply.getHeader("connection") === "close" && !draining) reply.removeHeader("connection");
  const refusal = refusalOf(error, request, isOutage);
  const { id, method } = request;
  const context = { request_id: id, err: error, method, route: request.routeOptions.url };
  if (refusal === undefined) logger.error(context, "request failed");
  else if (refusal.refused === "SERVER_002") logger.warn(context, "request not served");
  sendRefusal(reply, refusal ?? refuse("SERVER_001", "Something went wrong on our side"));
}
