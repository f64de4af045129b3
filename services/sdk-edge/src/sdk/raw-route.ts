import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
import type { RouteContract } from "@halyard/contracts";
import {
  type App,
  compileInputChecks,
  isRefusal,
  type Refusal,
  sendRefusal,
} from "@halyard/service";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";

/** A request and the response that is written to it, without the framework between them. */
export type Exchange = { request: IncomingMessage; response: ServerResponse; id: string };

const admittedKey = Symbol("halyard.admitted-key");
type AdmittedRequest = FastifyRequest & { [admittedKey]: DirectoryKey };

/**
 * Registers a route whose answer is more than JSON: bytes that are ready, an answer without a body, or
 * one without an end. All that can be refused is refused as on every other route, in the same order:
 * the key, the body that cannot be read, and what does not fit the contract.
 */
export function registerRawRoute<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType>(
  app: App,
  contract: RouteContract<P, Q, B>,
  options: {
    authenticate: (request: { headers: IncomingHttpHeaders }) => DirectoryKey | Refusal;
    respond: (key: DirectoryKey, exchange: Exchange) => void;
  },
): void {
  const checks = compileInputChecks(contract);
  if (!app.hasRequestDecorator(admittedKey)) app.decorateRequest(admittedKey, undefined);

  app.route({
    method: contract.method,
    url: contract.path,
    exposeHeadRoute: false,
    // The time until a stream ends says nothing about how fast it was answered.
    config: { measured: contract.success.contentType === undefined },
    onRequest: async (request: FastifyRequest, reply: FastifyReply) => {
      const key = options.authenticate(request);
      if (isRefusal(key)) return sendRefusal(reply, key);
      (request as AdmittedRequest)[admittedKey] = key;
      return undefined;
    },
    handler: (request: FastifyRequest, reply: FastifyReply) => {
      const query = checks.query(request.query as Record<string, unknown>, request.raw.url ?? "");
      if (isRefusal(query)) return sendRefusal(reply, query);
      const body = checks.body(request.body);
      if (isRefusal(body)) return sendRefusal(reply, body);
      reply.hijack();
      const exchange = { request: request.raw, response: reply.raw, id: request.id };
      options.respond((request as AdmittedRequest)[admittedKey], exchange);
      return undefined;
    },
  });
}
