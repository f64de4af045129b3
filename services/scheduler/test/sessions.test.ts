import type { GrantedRole, SnapshotEntry } from "@halyard/contracts";
import { digestOfSecret } from "@halyard/people";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { makeTenant, openScheduler, type Replica, type Scheduler } from "./scheduler-fixture.ts";

/** Requests by session. The roles of all routes are in `libs/people/test/table-of-roles.ts`. */
let scheduler: Scheduler;
let replica: Replica;
const tenant = makeTenant();
const flag = tenant.flag();
const environment: SnapshotEntry = {
  address: {
    ...{ kind: "environment", organizationId: tenant.organizationId },
    environmentId: tenant.environmentId,
  },
  value: {
    ...{ kind: "environment", organization_id: tenant.organizationId, name: "production" },
    ...{ project_id: tenant.projectId, environment_id: tenant.environmentId },
    ...{ version: 1, committed_at: new Date().toISOString() },
  },
};
beforeAll(async () => {
  scheduler = await openScheduler();
  await scheduler.bucket.rewrite([...tenant.entries, environment, flag.entry]);
  replica = await scheduler.startReplica();
});
afterAll(() => scheduler.close());

/** Signs in a person with a role. Returns the user and the headers of the browser. */
function signIn(grant: GrantedRole): { userId: string; headers: Record<string, string> } {
  const [sessionId, userId, personId, secret] = [uuidv7(), uuidv7(), uuidv7(), "s".repeat(43)];
  const { organizationId } = tenant;
  const now = new Date().toISOString();
  const later = new Date(Date.now() + 60_000).toISOString();
  const stamp = { version: 1, committed_at: now };
  replica.people.apply({
    address: { kind: "user", organizationId, userId },
    value: {
      ...{ kind: "user", organization_id: organizationId, user_id: userId, person_id: personId },
      ...{ governed: true, grants: [grant], ...stamp },
    },
  });
  replica.people.apply({
    address: { kind: "session", sessionId },
    value: {
      ...{ kind: "session", session_id: sessionId, secret_sha256: digestOfSecret(secret) },
      ...{ person_id: personId, via: "passkey", groups: [], signed_in_at: now, confirmed_at: now },
      ...{ expires_at: later, idle_until: later, ...stamp },
    },
  });
  const cookie = `halyard-session-8080=${sessionId}.${secret}`;
  return { userId, headers: { cookie, origin: "http://localhost:8080" } };
}

const body = { disable_at: "2099-01-01T00:00:00Z" };
const set = (headers: Record<string, string>) =>
  replica.call(flag.path, { method: "POST", body, headers });

it("lets an editor of the environment set a schedule, as the user of the session", async () => {
  const { userId, headers } = signIn({
    ...{ role: "editor", project_id: tenant.projectId, environment_ids: [tenant.environmentId] },
  });
  const answer = await set(headers);
  expect(answer.status).toBe(201);
  expect(answer.body.created_by).toBe(userId);
  const [row] = await scheduler.admin`
    select message from audit_outbox where message ->> 'flag_id' = ${flag.flagId}`;
  expect(row?.message).toMatchObject({ user_id: userId, api_key_id: null, via: "passkey" });
});

it("rejects an editor of another environment, and names the missing role", async () => {
  const { headers } = signIn({
    ...{ role: "editor", project_id: tenant.projectId, environment_ids: [uuidv7()] },
  });
  const answer = await set(headers);
  expect(answer.status).toBe(403);
  expect(answer.body.error.message).toBe(
    "This needs the role editor in this environment; yours is viewer.",
  );
});

it("rejects a page of another website", async () => {
  const { headers } = signIn({ role: "owner" });
  expect((await set({ ...headers, origin: "https://other.example.com" })).status).toBe(403);
});

it("does not fall back from an invalid key to the session", async () => {
  const { headers } = signIn({ role: "owner" });
  expect((await set({ ...headers, authorization: "Bearer unknown" })).status).toBe(401);
});
