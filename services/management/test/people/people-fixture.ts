import type { GrantedRole } from "@halyard/contracts";
import { isProblem, type Problem } from "@halyard/http";
import { type Place, roleAt, sessionCookieName } from "@halyard/people";
import type { CallOptions } from "@halyard/testing";
import { v7 as uuidv7 } from "uuid";
import { readContext } from "../../src/access/change-context.ts";
import type { Change } from "../../src/access/routes.ts";
import type { Giver } from "../../src/people/grant-changes.ts";
import { publishUser } from "../../src/people/publish-user.ts";
import { beginSession } from "../../src/people/sessions.ts";
import { type Management, operatorToken, publicUrl } from "../management-fixture.ts";
import { tenancyOf } from "../tenancy-fixture.ts";

/** Creates people and their roles. Sign-ins are written to the database. */
export function peopleOf(management: Management) {
  const given = tenancyOf(management);
  const grantsOf = (organizationId: string) => `/api/v1/organizations/${organizationId}/grants`;

  /** Links a new person to users, as if the person had signed in. Returns the id of the person. */
  async function person(...userIds: string[]): Promise<string> {
    const id = uuidv7();
    await management.sql`insert into people (id, created_at) values (${id}, now())`;
    await management.sql`update users set person_id = ${id} where id = any(${userIds}::uuid[])`;
    return id;
  }

  /** Writes a session of a person. Returns its id. */
  async function session(personId: string): Promise<string> {
    const id = uuidv7();
    await management.sql`
      insert into sessions (id, secret_sha256, person_id, via, groups, address, user_agent,
        signed_in_at, confirmed_at, expires_at, idle_until)
      values (${id}, ${"0".repeat(64)}, ${personId}, 'passkey', '{}', '127.0.0.1', 'a browser',
        now(), now(), now() + interval '7 days', now() + interval '12 hours')`;
    return id;
  }

  /**
   * Signs in a user, with a new person. Returns the function that sends requests as the browser does, with the session's
   * cookie.
   */
  async function signIn(
    { organizationId, userId }: { organizationId: string; userId: string },
    groups: readonly string[] = [],
  ) {
    const personId = await person(userId);
    const clock = { now: () => management.clock.now(), newId: uuidv7 };
    const begun = await management.writer(async (write) => {
      await publishUser(write, organizationId, userId);
      const facts = { address: "127.0.0.1", userAgent: "a browser" };
      return beginSession({ ...write, ...clock }, { personId, via: "passkey", groups, ...facts });
    });
    if (isProblem(begun)) throw new Error(begun.message);
    const { sessionId, secret } = begun.cookie;
    const cookie = `${sessionCookieName(new URL(publicUrl))}=${sessionId}.${secret}`;
    return (path: string, options: CallOptions = {}) =>
      management.call(path, {
        ...options,
        headers: { ...options.headers, cookie, origin: publicUrl },
      });
  }

  const grant = (organizationId: string, body: object, key = operatorToken) =>
    management.call(grantsOf(organizationId), { method: "POST", key, body });

  const withdraw = (organizationId: string, grantId: string, key = operatorToken) =>
    management.call(`${grantsOf(organizationId)}/${grantId}`, { method: "DELETE", key });

  /** Runs a use case as a user who is signed in, with the roles of the directory of people. */
  function asUser<Done extends object>(
    userId: string,
    { groups = [], grants }: { groups?: readonly string[]; grants: readonly GrantedRole[] },
    run: (change: Change, giver: Giver) => Promise<Done | Problem>,
  ): Promise<Done | Problem> {
    const clock = { now: () => new Date(), newId: uuidv7 };
    const author = { userId, apiKeyId: null, via: "passkey" } as const;
    const giver = { role: (place: Place) => roleAt(grants, place), user: { userId, groups } };
    return management.writer((write) => {
      const context = () => readContext(write.tx, { author, cause: "manual" }, clock);
      return run({ ...write, ...clock, principal: { kind: "operator" }, context }, giver);
    });
  }

  /** Makes a user an owner of its organization, and returns the id of the grant. */
  async function owner(organizationId: string, userId: string): Promise<string> {
    const role = { role: "owner", scope: { organization: organizationId } };
    const answer = await grant(organizationId, { subject: { user_id: userId }, ...role });
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
    return answer.body.id;
  }

  /** Returns the newest value of an entry of the people bucket. */
  async function entry(key: string) {
    const [row] = await management.sql<{ content: string }[]>`
      select content from people_entries where key = ${key}`;
    return row && JSON.parse(row.content);
  }

  /** Returns the entries of people in an organization's audit log, newest first. */
  async function audit(organizationId: string) {
    const path = `/api/v1/organizations/${organizationId}/changes`;
    const { body } = await management.call(path, { key: operatorToken });
    return body.changes.filter(({ action }: { action: string }) => !action.startsWith("user_c"));
  }

  return {
    ...given,
    grantsOf,
    person,
    session,
    signIn,
    grant,
    withdraw,
    asUser,
    owner,
    entry,
    audit,
  };
}
