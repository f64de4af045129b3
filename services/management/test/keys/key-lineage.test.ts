import { connectAsSuperuser, eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { openManagement, operatorToken } from "../management-fixture.ts";
import { tenancyOf } from "../tenancy-fixture.ts";

/** A key with its lineage. These tests cover `issued_by`, inherited expiry and `DELETE …?issued=true`. */
type Issued = { id: string; key: string; issued_by: string | null; expires_at: string | null };

const management = await openManagement();
afterAll(() => management.close());
const given = tenancyOf(management);
const scope = await given.scope();
const keys = `/api/v1/projects/${scope.project.id}/environments/${scope.first.id}/keys`;

const isLive = (key: Issued) => management.directory.find(key.id, Date.now()) !== undefined;

async function made(path: string, by: string, body: unknown): Promise<Issued> {
  const answer = await management.call(path, { method: "POST", key: by, body });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  await eventually(() => isLive(answer.body));
  return answer.body;
}

const issue = (by: string, body: Record<string, unknown> = {}) =>
  made(keys, by, { kind: "server", name: "A key", user_id: scope.userId, ...body });

const rotate = (by: string, { id }: Issued, overlap_seconds = 3600) =>
  made(`${keys}/${id}/rotate`, by, { overlap_seconds });

async function revoke(by: string, { id }: Issued, query = ""): Promise<void> {
  const answer = await management.call(`${keys}/${id}${query}`, { method: "DELETE", key: by });
  expect(answer.status).toBe(204);
}

async function revokedOf(all: Record<string, Issued>): Promise<string[]> {
  const { body } = await management.call(keys, { key: operatorToken });
  const revoked = new Set(
    body.keys
      .filter(({ revoked_at }: { revoked_at: string | null }) => revoked_at !== null)
      .map(({ id }: Issued) => id),
  );
  const names = Object.keys(all).filter((name) => revoked.has(all[name]?.id));
  for (const name of names) await eventually(() => !isLive(all[name] as Issued));
  return names.sort();
}

const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();

describe("issued_by", () => {
  it("is the key that made the request, and null for the operator", async () => {
    const first = await issue(operatorToken);
    const second = await issue(first.key);
    const successor = await rotate(first.key, second);
    const replaced = await rotate(operatorToken, successor);
    expect([first, second, successor, replaced].map(({ issued_by }) => issued_by)).toEqual([
      null,
      first.id,
      first.id,
      null,
    ]);
    const read = await management.call(`${keys}/${second.id}`, { key: operatorToken });
    expect(read.body.issued_by).toBe(first.id);
  });
});

describe("the lifetime of an issued key", () => {
  it("ends with its issuer in every environment of the project", async () => {
    const expires_at = inHours(1);
    const parent = await issue(operatorToken, { expires_at });
    const keysOfSecond = keys.replace(scope.first.id, scope.second.id);
    const child = await made(keysOfSecond, parent.key, {
      kind: "client",
      name: "A key",
      user_id: scope.userId,
    });
    expect(child.expires_at).toBe(expires_at);
    const body = {
      kind: "server",
      name: "A key",
      user_id: scope.userId,
      expires_at: inHours(2),
    };
    const rejected = await management.call(keys, { method: "POST", key: parent.key, body });
    expect([rejected.status, rejected.body.error.code]).toEqual([403, "AUTH_002"]);
  });

  it("ends with the overlap if its issuer was rotated", async () => {
    const old = await issue(operatorToken);
    const successor = await rotate(operatorToken, old, 600);
    const { body } = await management.call(`${keys}/${old.id}`, { key: operatorToken });
    const ofOld = await issue(old.key);
    expect(ofOld.expires_at).toBe(body.expires_at);
    expect((await issue(successor.key)).expires_at).toBeNull();
    const attempt = await management.call(`${keys}/${successor.id}/rotate`, {
      method: "POST",
      key: old.key,
    });
    expect(attempt.status).toBe(403);
    expect(isLive(successor)).toBe(true);
  });

  it("follows the issuer's current row, not the key directory", async () => {
    const issuer = await issue(operatorToken);
    const { sql } = management;
    await sql`update api_keys set expires_at = ${inHours(1)} where id = ${issuer.id}`;
    expect((await issue(issuer.key)).expires_at).not.toBeNull();
    await sql`update api_keys set revoked_at = now() where id = ${issuer.id}`;
    const body = { kind: "server", name: "A key", user_id: scope.userId };
    const rejected = await management.call(keys, { method: "POST", key: issuer.key, body });
    expect([rejected.status, rejected.body.error.code]).toEqual([401, "AUTH_001"]);
  });
});

describe("revoking a key with issued=true", () => {
  async function family() {
    const root = await issue(operatorToken);
    const child = await issue(root.key);
    const successor = await rotate(operatorToken, root);
    const later = await issue(successor.key, { kind: "client" });
    const grandchild = await issue(child.key);
    const heir = await rotate(operatorToken, grandchild);
    const stranger = await issue(operatorToken);
    return { root, child, successor, later, grandchild, heir, stranger };
  }

  it("revokes all keys that it and its successors issued directly or indirectly", async () => {
    const all = await family();
    await revoke(operatorToken, all.root, "?issued=true");
    expect(await revokedOf(all)).toEqual(["child", "grandchild", "heir", "later", "root"]);
    expect(isLive(all.successor) && isLive(all.stranger)).toBe(true);
  });

  it("revokes only the key itself without the parameter", async () => {
    const all = await family();
    await revoke(operatorToken, all.root);
    await revoke(operatorToken, all.child, "?issued=false");
    expect(await revokedOf(all)).toEqual(["child", "root"]);
  });

  it("is allowed to a key of the same user, even after the key was revoked", async () => {
    const all = await family();
    await revoke(operatorToken, all.root);
    await revoke(scope.serverKey, all.root, "?issued=true");
    expect(await revokedOf(all)).toEqual(["child", "grandchild", "heir", "later", "root"]);
    await revoke(operatorToken, all.root, "?issued=true");
  });

  it("records each revoked key in the audit log", async () => {
    const { root, child, later, grandchild, heir } = await family();
    await revoke(operatorToken, root, "?issued=true");
    const changes = await management.sql`
      select key_id from changes
      where action = 'key_revoked' and key_id in (${root.id}, ${child.id}, ${later.id},
        ${grandchild.id}, ${heir.id})`;
    expect(changes).toHaveLength(5);
  });

  it("leaves no concurrently issued key", async () => {
    const root = await issue(operatorToken);
    const body = { kind: "server", name: "Raced", user_id: scope.userId };
    const attempts = Array.from({ length: 8 }, () =>
      management.call(keys, { method: "POST", key: root.key, body }),
    );
    await revoke(operatorToken, root, "?issued=true");
    const issued = (await Promise.all(attempts)).filter(({ status }) => status === 201);
    for (const { body: raced } of issued) await eventually(() => !isLive(raced));
    const late = await management.sql`
      select from api_keys where issued_by = ${root.id} and revoked_at is null`;
    expect(late).toHaveLength(0);
  });

  it("rejects another value of the parameter", async () => {
    const key = await issue(operatorToken);
    const path = `${keys}/${key.id}?issued=yes`;
    expect((await management.call(path, { method: "DELETE", key: operatorToken })).status).toBe(
      400,
    );
    expect(isLive(key)).toBe(true);
  });
});

describe("given removed rows of ended keys", () => {
  /** Removes rows as retention does, without the wait of 30 days. */
  async function remove(...ended: Issued[]): Promise<void> {
    const admin = connectAsSuperuser(management.adminUrl, "management");
    const ids = ended.map(({ id }) => id);
    try {
      await admin`
        update api_keys set revoked_at = now() - interval '99 days'
        where id = any(${ids})`;
      await admin`select remove_ended_keys(60, 100)`;
      const left = await admin`select from api_keys where id = any(${ids})`;
      expect(left).toHaveLength(0);
    } finally {
      await admin.end();
    }
  }

  it("revokes the keys that they issued", async () => {
    const root = await issue(operatorToken);
    const child = await issue(root.key);
    const grandchild = await issue(child.key);
    const heir = await rotate(operatorToken, grandchild, 0);
    const last = await issue(heir.key);
    await revoke(operatorToken, heir);
    await remove(child, grandchild, heir);
    expect(isLive(last)).toBe(true);
    await revoke(operatorToken, root, "?issued=true");
    expect(await revokedOf({ last })).toEqual(["last"]);
  });

  it("keeps no row for a removed key without descendants", async () => {
    const root = await issue(operatorToken);
    const child = await issue(root.key);
    await remove(root);
    await remove(child);
    const kept = await management.sql`
      select from removed_keys where id in (${root.id}, ${child.id})`;
    expect(kept).toHaveLength(0);
  });

  it("rejects requests with a key whose row was removed", async () => {
    const issuer = await issue(operatorToken);
    await remove(issuer);
    const body = { kind: "server", name: "A key", user_id: scope.userId };
    const answer = await management.call(keys, { method: "POST", key: issuer.key, body });
    expect(answer.status).toBe(401);
  });
});
