import * as contract from "@halyard/contracts";
import { answer, createProblem, type Problem } from "@halyard/http";
import type { FoundSession, People } from "@halyard/people";
import type { Sql } from "@halyard/postgres";
import type { KeyPrincipal } from "../access/principal.ts";
import type { Change, Routes } from "../access/routes.ts";
import { endSessions, listSessions, type Session } from "../people/sessions.ts";
import { joinByInvitation } from "./invitations.ts";
import { deletePasskey, listPasskeys, type NamedPasskey } from "./passkey-store.ts";
import { recordOfPerson } from "./sign-in-person.ts";
import { readSignedIn } from "./signed-in.ts";

/** Registers the routes of a person's own sessions, passkeys and invitations. */
export function registerOwnRoutes(
  routes: Routes,
  { sql, people, now }: { sql: Sql; people: Pick<People, "memberOf">; now: () => Date },
): void {
  routes.read(contract.getSession, async (_, principal) =>
    answer.ok(await readSignedIn(sessionOf(principal), { sql, people })),
  );

  routes.read(contract.listSessions, async (_, principal) => {
    const session = sessionOf(principal);
    const sessions = await listSessions(sql, session.personId, now());
    return answer.ok({ sessions: sessions.map((own) => sessionResource(own, session)) });
  });

  routes.write(contract.endSessions, {
    run: (change, { query: { id } }) => endOwn(change, id?.toLowerCase()),
    answer: answer.noContent,
  });

  routes.read(contract.listPasskeys, async (_, principal) => {
    const passkeys = await listPasskeys(sql, sessionOf(principal).personId);
    return answer.ok({ passkeys: passkeys.map(passkeyResource) });
  });

  routes.write(contract.deletePasskey, {
    run: (change, { params: { passkeyId } }) => removePasskey(change, passkeyId),
    answer: answer.noContent,
  });

  routes.write(contract.acceptInvitation, {
    run: (change, { body: { code } }) => {
      const { personId, via } = sessionOf(change.principal);
      return joinByInvitation(change, { code, personId, via }, change);
    },
    answer: ({ id, organizationId }) => answer.ok({ organization_id: organizationId, user_id: id }),
  });
}

/** Ends one of a person's sessions, or all. An unknown session has ended already. */
async function endOwn(change: Change<KeyPrincipal>, id: string | undefined): Promise<object> {
  const session = sessionOf(change.principal);
  const { personId } = session;
  const which = id === undefined ? { personId } : { sessionId: id, personId };
  const ended = await endSessions(change, which);
  if (ended.length > 0) await recordOfPerson(change, "sessions_ended", session, change);
  return ended;
}

async function removePasskey(change: Change<KeyPrincipal>, id: string): Promise<object | Problem> {
  const session = sessionOf(change.principal);
  const passkey = { id, personId: session.personId };
  if (!(await deletePasskey(change.tx, passkey))) return noSuchPasskey;
  await recordOfPerson(change, "passkey_removed", session, change);
  return passkey;
}

/** Returns the session of a caller. Routes whose access is `session` have no other callers. */
function sessionOf({ key: { session } }: KeyPrincipal): FoundSession {
  if (session === undefined) throw new Error("the caller has no session");
  return session;
}

function sessionResource(own: Session, current: FoundSession): contract.Session {
  return {
    id: own.id,
    current: own.id === current.id,
    signed_in_by: own.via,
    signed_in_at: own.signedInAt.toISOString(),
    expires_at: own.expiresAt.toISOString(),
    address: own.address,
    user_agent: own.userAgent,
  };
}

function passkeyResource({ id, name, createdAt, lastUsedAt }: NamedPasskey): contract.Passkey {
  return {
    ...{ id, name, created_at: createdAt.toISOString() },
    last_used_at: lastUsedAt?.toISOString() ?? null,
  };
}

const noSuchPasskey = createProblem("NOT_FOUND_001", "You have no such passkey.");
