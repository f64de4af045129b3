import type { Checked } from "@halyard/contracts";
import { type App, createProblem, isProblem, type Problem, sendProblem } from "@halyard/http";
import { isSameOrigin, type SessionCookie, setCookie } from "@halyard/people";
import type { FastifyRequest } from "fastify";
import { sessionLifetimeMs } from "../people/sessions.ts";
import { crossOrigin, limitRequests } from "./auth-limits.ts";

/** The response of a route below `/auth/`: a body, or the cookie of a session that has begun, or neither. */
export type AuthAnswer = { body?: unknown; cookie?: SessionCookie };

/** Enough for a passkey with the certificate of its authenticator. */
const bodyLimitBytes = 64 * 1024;

/** Creates the function that registers a `POST` route below `/auth/` for pages of this installation. */
export function createAuthPost(app: App, { publicUrl, now }: { publicUrl: URL; now: () => Date }) {
  return function authPost<Body>(
    path: `/auth/${string}`,
    checkBody: (body: unknown) => Checked<Body>,
    handle: (body: Body, request: FastifyRequest) => Promise<AuthAnswer | Problem>,
  ): void {
    app.post(path, {
      bodyLimit: bodyLimitBytes,
      onRequest: limitRequests(now),
      handler: async (request, reply) => {
        if (!isSameOrigin(request.headers, publicUrl)) return sendProblem(reply, crossOrigin);
        const checked = checkBody(request.body);
        if (!checked.ok)
          return sendProblem(reply, createProblem("VALIDATION_001", checked.problem));
        const done = await handle(checked.value, request);
        if (isProblem(done)) return sendProblem(reply, done);
        const { body, cookie } = done;
        if (cookie !== undefined)
          reply.header("set-cookie", setCookie(publicUrl, cookie, sessionLifetimeMs / 1_000));
        return body === undefined ? reply.code(204).send() : reply.send(body);
      },
    });
  };
}

export type AuthPost = ReturnType<typeof createAuthPost>;
