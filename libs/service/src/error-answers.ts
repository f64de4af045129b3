import type { ServerResponse } from "node:http";
import { errorBodyFor, errorCodes } from "@halyard/contracts";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { createProblem, type Problem } from "./answer.ts";
import { anyOriginHeaders, isOpenToAllOrigins } from "./any-origin.ts";
import { appSettings } from "./app-settings.ts";
import { BodyEncodingError, BodySyntaxError, bodyTooLarge, notJson } from "./json-body.ts";
import { defaultRetryAfterSeconds, retryAfterOf } from "./unavailable-error.ts";

/** Turns everything that can go wrong with a request into an error body of the shape that its path has. */
export const jsonType = "application/json; charset=utf-8";

export const noSuchRoute = createProblem("NOT_FOUND_001", "There is nothing at this address");

/** Headers that a refusal of a request for this target always has, and its own. */
function headersOf(problem: Problem, target = ""): Record<string, string> {
  const headers: Record<string, string> = { "content-type": jsonType };
  if (isOpenToAllOrigins(target)) Object.assign(headers, anyOriginHeaders);
  if (problem.rejected === "AUTH_001") headers["www-authenticate"] = "Bearer";
  if (problem.rejected === "SERVER_002") headers["retry-after"] = "1";
  return { ...headers, ...problem.headers };
}

/** Sets the headers that every answer of the framework has. */
export function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header("x-request-id", request.id);
  // Keeps a browser from reading an answer as another type than its `Content-Type`.
  reply.header("x-content-type-options", "nosniff");
  if (appSettings(request.server).draining) reply.header("connection", "close");
}

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const { url } = reply.request.raw;
  return reply
    .code(errorCodes[problem.rejected].status)
    .headers(headersOf(problem, url))
    .send(bodyOf(problem, url));
}

/** The same for code that writes to the response itself. */
export function writeProblem(
  response: ServerResponse,
  problem: Problem,
  extraHeaders: Readonly<Record<string, string>> = {},
): void {
  const { url } = response.req;
  const body = Buffer.from(bodyOf(problem, url));
  response.writeHead(errorCodes[problem.rejected].status, {
    ...extraHeaders,
    ...headersOf(problem, url),
    "content-length": body.length,
  });
  response.end(body);
}

function bodyOf({ rejected, message }: Problem, target = ""): string {
  return JSON.stringify(errorBodyFor(target, rejected, message));
}

/** Errors of the framework that are the caller's doing. */
const clientErrors: Readonly<Record<string, Problem>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: bodyTooLarge,
  FST_ERR_CTP_INVALID_MEDIA_TYPE: notJson,
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: createProblem(
    "VALIDATION_001",
    "The body is not as long as Content-Length says",
  ),
};

const bodyBrokenOff = createProblem("VALIDATION_001", "The body did not arrive completely");

/** Tells the failures of a part that is away from faults of the program. */
export type IsOutage = (error: unknown) => boolean;

/**
 * What an error that was thrown on the way is answered with. Undefined: it is our fault. The caller's
 * own errors come first: a connection that the caller breaks off looks like one that a part broke off.
 */
function problemOf(
  error: unknown,
  request: FastifyRequest,
  isOutage: IsOutage,
): Problem | undefined {
  if (error instanceof BodySyntaxError) return createProblem("VALIDATION_001", error.message);
  if (error instanceof BodyEncodingError) return createProblem("VALIDATION_003", error.message);
  if (request.raw.readableAborted) return bodyBrokenOff;
  const known = clientErrors[(error as Partial<FastifyError> | undefined)?.code ?? ""];
  if (known !== undefined) return known;
  const retryAfterSeconds = isOutage(error) ? defaultRetryAfterSeconds : retryAfterOf(error);
  if (retryAfterSeconds === undefined) return undefined;
  return createProblem("SERVER_002", "A part that this call needs is away; try again", {
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
    sendProblem(reply, noSuchRoute);
    return;
  }
  // The framework would close the connection after a body that it did not read to its end. Closing
  // over unread bytes resets the connection, and the caller, or a gateway, might never see the
  // answer; Node drops the rest of the body instead, for as long as a request may take to arrive.
  const { draining, logger } = appSettings(request.server);
  if (reply.getHeader("connection") === "close" && !draining) reply.removeHeader("connection");
  const problem = problemOf(error, request, isOutage);
  const { id, method } = request;
  const context = { request_id: id, err: error, method, route: request.routeOptions.url };
  if (problem === undefined) logger.error(context, "request failed");
  else if (problem.rejected === "SERVER_002") logger.warn(context, "request not served");
  sendProblem(reply, problem ?? createProblem("SERVER_001", "Something went wrong on our side"));
}
