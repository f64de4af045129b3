import { afterAll, describe, expect, it } from "@jest/globals";
import { openManagement, operatorToken } from "../management-fixture.ts";
import { tenancyOf } from "../tenancy-fixture.ts";

/** Tests that a caller can read whose credential it uses. */

const management = await openManagement();
afterAll(() => management.close());
const given = tenancyOf(management);

const readMe = (key: string) => management.call("/api/v1/me", { key });

describe("the holder of a credential", () => {
  it("is the operator for the operator token", async () => {
    expect(await readMe(operatorToken)).toMatchObject({ status: 200, body: { kind: "operator" } });
  });

  it("is the key with its user, organization, project and environments for a server key", async () => {
    const { organizationId, userId, project, first } = await given.scope();
    const issued = await given.key(first, { user_id: userId, name: "Dashboard" });
    const users = await management.call(`/api/v1/organizations/${organizationId}/users/${userId}`, {
      key: operatorToken,
    });
    const organization = await management.call(`/api/v1/organizations/${organizationId}`, {
      key: operatorToken,
    });
    const { key: text, ...record } = issued;
    const { status, body } = await readMe(text);
    expect(status).toBe(200);
    expect(body).toEqual({
      kind: "server_key",
      key: record,
      user: { id: userId, email: users.body.email, name: null },
      organization: { id: organizationId, name: organization.body.name, plan: "growth" },
      project: { id: project.id, name: project.name },
      environments: project.environments,
    });
    expect(JSON.stringify(body)).not.toContain(text.slice(-43));
  });

  it("has only the environment of a key with environment_only", async () => {
    const { userId, second } = await given.scope();
    const { key } = await given.key(second, { user_id: userId, environment_only: true });
    expect((await readMe(key)).body.environments).toEqual([second]);
  });

  it("is not shown to a client key, or without a key", async () => {
    const { userId, first } = await given.scope();
    const { key } = await given.key(first, { user_id: userId, kind: "client" });
    expect((await readMe(key)).body.error.code).toBe("AUTH_002");
    expect((await management.call("/api/v1/me")).body.error.code).toBe("AUTH_001");
  });

  it("is invalid if the user of the key is deleted before the key ends", async () => {
    const { userId, serverKey } = await given.scope();
    await management.sql`update users set deleted_at = now() where id = ${userId}`;
    expect((await readMe(serverKey)).body.error.code).toBe("AUTH_001");
  });
});
