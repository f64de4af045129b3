import type { SignInMethod } from "@halyard/contracts";
import type { SessionCookie } from "@halyard/people";
import type { FastifyRequest } from "fastify";
import type { TimeAndIds } from "../access/change-context.ts";
import type { Write } from "../outbox/write.ts";
import { beginSession, endSessions } from "../people/sessions.ts";
import type { FindBrowserSession } from "./browser-session.ts";
import { findUsersOf } from "./identity-store.ts";
import { peopleEntry, personContext, recordByOrganization } from "./sign-in-person.ts";

/**
 * Signs in a person in a browser, whose previous session ends. The audit log of each organization of the person contains
 * the sign-in.
 */
export async function startSession(
  write: Write,
  {
    personId,
    via,
    request,
    findSession,
  }: {
    personId: string;
    via: SignInMethod;
    request: FastifyRequest;
    findSession: FindBrowserSession;
  },
  timeAndIds: TimeAndIds,
): Promise<SessionCookie> {
  const previous = findSession(request.headers.cookie);
  if (previous !== undefined) await endSessions(write, { sessionId: previous.id });
  const users = await findUsersOf(write.tx, personId);
  const entries = users.map((user) =>
    peopleEntry("signed_in", user, personContext(user, via, timeAndIds)),
  );
  recordByOrganization(write, entries);
  const browser = { address: request.ip, userAgent: request.headers["user-agent"] ?? "" };
  const begun = { personId, via, groups: [], ...browser };
  const { cookie } = await beginSession({ ...write, ...timeAndIds }, begun);
  return cookie;
}
