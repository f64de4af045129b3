import type { ServerResponse } from "node:http";
import { errorBodyFor, errorCodes } from "@halyard/contracts";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { createProblem, type Problem } from "./answer.ts";
import { anyOriginHeaders, isOpenToAllOrigins } from "./any-origin.ts";
import { appSettings } from "./app-settings.ts";
import { BodyError, bodyTooLarge, notJson } from "./json-body.ts";
import { traceFieldsOf } from "./request-spans.ts";
import { defaultRetryAfterSeconds, retryAfterOf } from "./unavailable-error.ts";

export const jsonType = "application/json; charset=utf-8";

export const noSuchRoute = createProblem("NOT_FOUND_001", "No such route.");

/** Returns the headers of an error response: those of every one for this target, and its own. */
function headersOf(problem: Problem, target = ""): Record<string, string> {
  const headers: Record<string, string> = { "content-type": jsonType };
  if (isOpenToAllOrigins(target)) Object.assign(headers, anyOriginHeaders);
  if (problem.rejected === "AUTH_001") headers["www-authenticate"] = "Bearer";
  if (problem.rejected === "SERVER_002") headers["retry-after"] = "1";
  return { ...headers, ...problem.headers };
}

export function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header("x-request-id", request.id);
  // Keeps a browser from interpreting a response as another type than its `Content-Type`.
  reply.header("x-content-type-options", "nosniff");
  if (appSettings(request.server).draining) reply.header("connection", "close");
}

/** Sends a problem as an error response, in the shape of the request's path. */
export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const { url } = reply.request.raw;
  return reply
    .code(errorCodes[problem.rejected].status)
    .headers(headersOf(problem, url))
    .send(bodyOf(problem, url));
}

/** Like `sendProblem`, for code that writes to the response itself. */
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

/** Errors of the framework that the client causes. */
const clientErrors: Readonly<Record<string, Problem>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: bodyTooLarge,
  FST_ERR_CTP_INVALID_MEDIA_TYPE: notJson,
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: createProblem(
    "VALIDATION_001",
    "The length of the body differs from Content-Length",
  ),
};

const bodyBrokenOff = createProblem("VALIDATION_001", "The body is incomplete");

/** Returns whether an error is an outage of a dependency instead of a bug. */
export type IsOutage = (error: unknown) => boolean;

/**
 * Returns the problem for an error that was thrown during a request; undefined for a bug. It checks for errors of the
 * client first, because a connection that the client closes looks like an outage of a dependency.
 */
function problemOf(
  error: unknown,
  request: FastifyRequest,
  isOutage: IsOutage,
): Problem | undefined {
  if (error instanceof BodyError) return error.problem;
  if (request.raw.readableAborted) return bodyBrokenOff;
  const known = clientErrors[(error as Partial<FastifyError> | undefined)?.code ?? ""];
  if (known !== undefined) return known;
  const retryAfterSeconds = isOutage(error) ? defaultRetryAfterSeconds : retryAfterOf(error);
  if (retryAfterSeconds === undefined) return undefined;
  const seconds = Math.max(1, Math.ceil(retryAfterSeconds));
  return createProblem(
    "SERVER_002",
    `A dependency of this request is unavailable; retry after ${seconds} s.`,
    { "retry-after": String(seconds) },
  );
}

export function answerError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  isOutage: IsOutage = () => false,
): void {
  // An unknown route is reported as such, even if the body is invalid too.
  if (request.is404) {
    sendProblem(reply, noSuchRoute);
    return;
  }
  // The framework would close the connection if it did not read the body to its end. Closing it with unread bytes
  // resets the connection, and the client or a gateway might lose the response. Node discards the rest of the body
  // instead, within the time limit of a request.
  const { draining, failureLog } = appSettings(request.server);
  if (reply.getHeader("connection") === "close" && !draining) reply.removeHeader("connection");
  const problem = problemOf(error, request, isOutage);
  const { id, method } = request;
  const about = { request_id: id, ...traceFieldsOf(request) };
  const context = { ...about, err: error, method, route: request.routeOptions.url };
  if (problem === undefined) failureLog.error(context, "request failed");
  else if (problem.rejected === "SERVER_002") failureLog.warn(context, "request not served");
  sendProblem(reply, problem ?? createProblem("SERVER_001", "Something went wrong on our side"));
}
