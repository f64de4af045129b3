import type { SignInMethod } from "@halyard/contracts";
import type { FoundSession, SessionCookie } from "@halyard/people";
import type { FastifyRequest } from "fastify";
import type { TimeAndIds } from "../access/change-context.ts";
import type { AuditEntry } from "../audit/audit-log.ts";
import type { Write } from "../outbox/write.ts";
import { beginSession, endSessions, type SignIn } from "../people/sessions.ts";
import { recordOfPerson } from "./sign-in-person.ts";

/** A completed sign-in of a browser. */
export type Started = Pick<SignIn, "provider"> & {
  personId: string;
  via: SignInMethod;
  request: FastifyRequest;
  /** The session of the browser so far, which ends. */
  previous: FoundSession | undefined;
  /** Groups at the identity provider. */
  groups?: readonly string[];
  /** Entries for the audit log that precede the sign-in. */
  entries?: readonly AuditEntry[];
};

/** Signs in a person in a browser. The audit log of each organization of the person contains the sign-in. */
export async function startSession(
  write: Write,
  { personId, via, request, previous, groups = [], provider, entries = [] }: Started,
  timeAndIds: TimeAndIds,
): Promise<SessionCookie> {
  if (previous !== undefined) await endSessions(write, { sessionId: previous.id });
  await recordOfPerson(write, "signed_in", { personId, via, entries }, timeAndIds);
  const { cookie } = await beginSession(
    { ...write, ...timeAndIds },
    {
      ...{ personId, via, groups, ...(provider && { provider }) },
      ...{ address: request.ip, userAgent: request.headers["user-agent"] ?? "" },
    },
  );
  return cookie;
}
