import {
  compileCheck,
  OneTimeCode,
  type ReadInvitation,
  type SignInMethods,
} from "@halyard/contracts";
import { isProblem } from "@halyard/http";
import type { Callers } from "@halyard/people";
import type { Sql } from "@halyard/postgres";
import type { TimeAndIds } from "../access/change-context.ts";
import type { Writer } from "../outbox/write.ts";
import type { AuthPost } from "./auth-post.ts";
import { findInvited, type InvitationContent } from "./invitation-store.ts";
import { invalidCode, takeLink } from "./links.ts";
import { readCode } from "./one-time-codes.ts";
import { personOfUser } from "./person-of-user.ts";
import { startSession } from "./start-session.ts";

/** Routes of links whose codes are in their fragments. Only `POST` counts, because scanners of mail follow links. */
type LinkRoutesOptions = TimeAndIds & {
  sql: Sql;
  writer: Writer;
  findSession: Callers["findSession"];
  methods: SignInMethods;
};

/** Registers the route that signs in a browser by the operator's link. */
export function registerOperatorLinks(
  authPost: AuthPost,
  { writer, findSession, now, newId }: LinkRoutesOptions,
): void {
  authPost("/auth/link/verify", compileCheck(OneTimeCode), async ({ code }, request) => {
    const previous = await findSession(request);
    return writer(async (write) => {
      const user = await takeLink(write, code, now());
      if (isProblem(user)) return user;
      const via = "operator" as const;
      const timeAndIds = { now, newId };
      const personId = await personOfUser(write, { user, via }, timeAndIds);
      const started = { personId, via, request, previous };
      return { cookie: await startSession(write, started, timeAndIds) };
    });
  });
}

/** Registers the route that shows an invitation. It does not use it up. */
export function registerInvitationReading(
  authPost: AuthPost,
  { sql, methods, now }: LinkRoutesOptions,
): void {
  authPost("/auth/invitation/read", compileCheck(OneTimeCode), async ({ code }) => {
    const content = await readCode<InvitationContent>(sql, "invitation", code, now());
    const invited = content && (await findInvited(sql, content));
    if (invited === undefined) return invalidCode;
    const { organization, email } = invited;
    return { body: { organization, email, methods } satisfies ReadInvitation };
  });
}
