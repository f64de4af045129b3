import { afterAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { auditEntry } from "../../src/audit/audit-log.ts";
import { recordAudit } from "../../src/audit/audit-store.ts";
import { openManagement, operatorToken } from "../management-fixture.ts";
import { tenancyOf } from "../tenancy-fixture.ts";

/** Tests the audit log of an organization's people. */

const management = await openManagement();
afterAll(() => management.close());
const given = tenancyOf(management);

const logOf = (organizationId: string) => `/api/v1/organizations/${organizationId}/changes`;
const read = (path: string) => management.call(path, { key: operatorToken });

type Entry = { action: string; user_id: string; actor: object };
const actionsIn = (changes: readonly Entry[]) => changes.map(({ action }) => action);

/** Records a sign-in, which concerns no project. */
async function signIn({ organizationId, userId }: { organizationId: string; userId: string }) {
  const actor = { id: userId, email: "ada@example.com" };
  const now = new Date();
  const context = { actor, apiKeyId: null, via: "passkey", cause: "manual", now } as const;
  const difference = { action: "signed_in", before: null, after: null } as const;
  await management.writer(async (write) => {
    const entry = { organizationId, userId, ...difference };
    recordAudit(write, [auditEntry({ ...context, newId: uuidv7 }, entry)]);
    return {};
  });
}

describe("the audit log of an organization", () => {
  it("contains users and sign-ins, newest first, but no changes of projects", async () => {
    const scope = await given.scope();
    await signIn(scope);
    const { body, status } = await read(logOf(scope.organizationId));
    expect(status).toBe(200);
    expect(body.next_cursor).toBeNull();
    expect(body.changes).toMatchObject([
      {
        action: "signed_in",
        user_id: scope.userId,
        actor: { id: scope.userId, email: "ada@example.com", via: "passkey" },
        api_key_id: null,
      },
      { action: "user_created", user_id: scope.userId, actor: { via: "operator" } },
    ]);
  });

  it("is not part of a project's audit log, except for changes of users", async () => {
    const scope = await given.scope();
    await signIn(scope);
    const ofProject = await read(`/api/v1/projects/${scope.project.id}/changes`);
    expect(actionsIn(ofProject.body.changes)).not.toContain("signed_in");
    expect(actionsIn(ofProject.body.changes)).toContain("user_created");
  });

  it("has pages and filters", async () => {
    const scope = await given.scope();
    await signIn(scope);
    await signIn(scope);
    const log = logOf(scope.organizationId);
    const first = (await read(`${log}?limit=1`)).body;
    expect(actionsIn(first.changes)).toEqual(["signed_in"]);
    const rest = (await read(`${log}?cursor=${first.next_cursor}`)).body;
    expect(actionsIn(rest.changes)).toEqual(["signed_in", "user_created"]);
    const created = (await read(`${log}?action=user_created`)).body;
    expect(actionsIn(created.changes)).toEqual(["user_created"]);
    const byUser = (await read(`${log}?actor_id=${scope.userId}`)).body;
    expect(actionsIn(byUser.changes)).toEqual(["signed_in", "signed_in"]);
  });

  it("rejects the cursor of another organization", async () => {
    const [one, other] = [await given.scope(), await given.scope()];
    await signIn(one);
    const { body } = await read(`${logOf(one.organizationId)}?limit=1`);
    const answer = await read(`${logOf(other.organizationId)}?cursor=${body.next_cursor}`);
    expect([answer.status, answer.body.error.code]).toEqual([400, "VALIDATION_001"]);
  });

  it("does not exist for an unknown organization", async () => {
    expect((await read(logOf(uuidv7()))).status).toBe(404);
  });
});
