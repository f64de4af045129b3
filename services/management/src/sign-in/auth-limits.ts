import { createProblem, sendProblem } from "@halyard/http";
import { addressBlock, createAdmission, createRateLimit } from "@halyard/rate-limit";
import type { FastifyReply, FastifyRequest } from "fastify";

/** The common rules of the routes below `/auth/`, which browsers and the provider call without credentials. */
const requestsPerMinute = 10;
const rate = { requestsPerSecond: requestsPerMinute / 60, burst: requestsPerMinute };
const tooMany = `Too many requests from this address. The limit is ${requestsPerMinute} a minute, in each process.`;

type OnRequest = (request: FastifyRequest, reply: FastifyReply, done: () => void) => void;

/** Keeps responses out of caches, and addresses with codes out of `Referer`. */
export function setAuthHeaders(reply: FastifyReply): void {
  reply.headers({ "cache-control": "no-store", "referrer-policy": "no-referrer" });
}

/** Creates the `onRequest` of one route: ten requests a minute and address. */
export function limitRequests(now: () => Date): OnRequest {
  const admit = createAdmission(createRateLimit(rate), tooMany);
  return (request, reply, done) => {
    setAuthHeaders(reply);
    const problem = admit({ id: addressBlock(request.ip) }, now().getTime());
    if (problem === undefined) done();
    else sendProblem(reply, problem);
  };
}

/**
 * Creates the limit of back-channel logout: ten invalid tokens a minute and address. Valid ones do not count, because one
 * provider signs out everybody from the same address.
 */
export function limitFailures(now: () => Date): {
  onRequest: OnRequest;
  countFailure: (address: string) => void;
} {
  const failures = createRateLimit(rate);
  const admit = createAdmission(failures, tooMany);
  return {
    onRequest(request, reply, done) {
      setAuthHeaders(reply);
      const id = addressBlock(request.ip);
      const isExhausted = failures.left(id, now().getTime()).requests === 0;
      const problem = isExhausted ? admit({ id }, now().getTime()) : undefined;
      if (problem === undefined) done();
      else sendProblem(reply, problem);
    },
    countFailure: (address) => failures.charge(addressBlock(address), now().getTime(), 1),
  };
}

export const crossOrigin = createProblem(
  "AUTH_002",
  "Only pages of this installation may send this request.",
);
