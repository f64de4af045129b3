import { describe, expect, it } from "@jest/globals";
import {
  decideIssue,
  decideRevoke,
  decideRotate,
  type IssueContext,
} from "../../src/keys/decide-key.ts";
import type { Key } from "../../src/keys/key.ts";

const now = new Date("2027-01-31T09:00:00.000Z");
const inSeconds = (seconds: number) => new Date(now.getTime() + seconds * 1000);
const context: IssueContext = {
  actor: { id: "ada", email: "ada@example.com" },
  apiKeyId: null,
  via: "operator",
  cause: "manual",
  now,
  newId: () => "new-id",
  issuer: null,
  issuers: [],
  liveKeyCount: 0,
};
const material = { id: "bbbbbbbbbbbbbbbb", key: "hs_…", secretSha256: "b".repeat(64) };
const scope = {
  organizationId: "organization",
  projectId: "project",
  environmentId: "environment",
  userId: "ada",
};
const request = { kind: "server" as const, name: "CI" };

const aKey = (with_: Partial<Key> = {}): Key => ({
  ...scope,
  id: "aaaaaaaaaaaaaaaa",
  secretSha256: "a".repeat(64),
  kind: "server",
  name: "CI",
  environmentOnly: true,
  scope: "write",
  version: 3,
  createdAt: inSeconds(-1000),
  expiresAt: null,
  revokedAt: null,
  issuedBy: null,
  issuers: [],
  successorOf: null,
  ...with_,
});

/** Returns the published keys of a decision: id, version, and deletion or expiry time. */
function published(decision: { messages: readonly object[] }) {
  return decision.messages.map((message) => {
    const { address, value } = message as {
      address: { keyId: string };
      value: { deleted?: boolean; expires_at?: string | null; version: number };
    };
    return [address.keyId, value.version, value.deleted ? "deleted" : value.expires_at];
  });
}

describe("issuing", () => {
  it("creates a key without expiry and not limited to its environment by default", () => {
    const decision = decideIssue(scope, request, material, context);
    expect(decision).toMatchObject({
      issued: {
        ...scope,
        id: material.id,
        environmentOnly: false,
        expiresAt: null,
        revokedAt: null,
        version: 1,
        createdAt: now,
      },
      audit: [{ action: "key_issued", keyId: material.id, before: null }],
    });
  });

  it.each(["read", "propose", "write"] as const)(
    "issues a server key with the scope %s",
    (scopeOfKey) => {
      const decision = decideIssue(
        scope,
        { ...request, kind: "server", scope: scopeOfKey },
        material,
        context,
      );
      expect(decision).toMatchObject({ issued: { scope: scopeOfKey } });
    },
  );

  it("rejects a scope for a key that is no server key", () => {
    const decision = decideIssue(
      scope,
      { ...request, kind: "client", scope: "read" },
      material,
      context,
    );
    expect(decision).toMatchObject({ rejected: "VALIDATION_001" });
  });

  it("keeps the scope in a rotation", () => {
    const decision = decideRotate(aKey({ scope: "read" }), 0, material, context);
    expect(decision).toMatchObject({ issued: { scope: "read" } });
  });

  it("stores no secret, and publishes the digest in the snapshot only", () => {
    const decision = decideIssue(scope, request, material, context);
    expect(JSON.stringify(decision)).not.toContain(material.key);
    expect(decision).toMatchObject({
      messages: [{ value: { secret_sha256: material.secretSha256 } }],
    });
    expect("audit" in decision && JSON.stringify(decision.audit)).not.toContain(
      material.secretSha256,
    );
  });

  it.each([
    ["2027-01-31T09:00:00.001Z", "2027-01-31T09:00:00.001Z"],
    ["2027-01-31T11:00:00+01:00", "2027-01-31T10:00:00.000Z"],
    ["9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"],
  ])("accepts the expiry time %s", (expires_at, expected) => {
    const decision = decideIssue(scope, { ...request, expires_at }, material, context);
    expect(decision).toMatchObject({ issued: { expiresAt: new Date(expected) } });
  });

  it.each(["2027-01-31T09:00:00Z", "2027-01-31T10:59:59+02:00", "0000-01-01T00:00:00Z"])(
    "rejects %s, which is not in the future",
    (expires_at) => {
      expect(decideIssue(scope, { ...request, expires_at }, material, context)).toEqual({
        rejected: "VALIDATION_001",
        message: "/expires_at must be in the future",
      });
    },
  );

  it("rejects an expiry time with a five-digit year in UTC", () => {
    const expires_at = "9999-12-31T23:59:59-01:00";
    expect(decideIssue(scope, { ...request, expires_at }, material, context)).toMatchObject({
      message: "/expires_at must be before the year 10000",
    });
  });
});

describe("given an environment with the maximum number of live keys", () => {
  const full = { ...context, liveKeyCount: 1_000 };
  const tooMany = {
    rejected: "CONFLICT_001",
    message:
      "The environment has 1000 live keys. The maximum is 1000: revoke keys that are not in use.",
  };

  it("issues no further key", () => {
    expect(decideIssue(scope, request, material, full)).toEqual(tooMany);
    const oneLess = { ...full, liveKeyCount: 999 };
    expect(decideIssue(scope, request, material, oneLess)).toHaveProperty("issued");
  });

  it("rotates keys without an overlap only", () => {
    expect(decideRotate(aKey(), 1, material, full)).toEqual(tooMany);
    expect(decideRotate(aKey(), 0, material, full)).toHaveProperty("issued");
  });
});

describe("a key that expires", () => {
  const expiring = { ...context, issuer: aKey({ expiresAt: inSeconds(100) }) };

  it("issues keys that expire with it", () => {
    for (const expires_at of [undefined, null])
      expect(decideIssue(scope, { ...request, expires_at }, material, expiring)).toMatchObject({
        issued: { expiresAt: inSeconds(100), issuedBy: "aaaaaaaaaaaaaaaa" },
      });
  });

  it("issues keys that expire before it", () => {
    for (const seconds of [99, 100]) {
      const expires_at = inSeconds(seconds).toISOString();
      expect(decideIssue(scope, { ...request, expires_at }, material, expiring)).toMatchObject({
        issued: { expiresAt: inSeconds(seconds) },
      });
    }
  });

  it("issues no key that expires after it", () => {
    const expires_at = inSeconds(100.001).toISOString();
    expect(decideIssue(scope, { ...request, expires_at }, material, expiring)).toEqual({
      rejected: "AUTH_002",
      message: expect.stringContaining(inSeconds(100).toISOString()),
    });
  });

  it("rotates no key that expires after it", () => {
    for (const expiresAt of [null, inSeconds(100.001)])
      expect(decideRotate(aKey({ expiresAt }), 0, material, expiring)).toMatchObject({
        rejected: "AUTH_002",
      });
    expect(decideRotate(expiring.issuer, 0, material, expiring)).toMatchObject({
      issued: { expiresAt: inSeconds(100), issuedBy: "aaaaaaaaaaaaaaaa" },
    });
  });
});

describe("rotating", () => {
  it("creates a key that differs only in id and secret", () => {
    const old = aKey({ expiresAt: inSeconds(500) });
    expect(decideRotate(old, 60, material, context)).toMatchObject({
      issued: {
        ...old,
        id: material.id,
        secretSha256: material.secretSha256,
        version: 1,
        createdAt: now,
        successorOf: old.id,
      },
    });
  });

  it("revokes the old key immediately without an overlap", () => {
    const decision = decideRotate(aKey(), 0, material, context);
    if ("rejected" in decision) throw new Error(decision.message);
    expect(decision.changed).toEqual([aKey({ version: 4, revokedAt: now })]);
    expect(published(decision)).toEqual([
      [material.id, 1, null],
      ["aaaaaaaaaaaaaaaa", 4, "deleted"],
    ]);
  });

  it("makes the old key expire after the overlap", () => {
    const decision = decideRotate(aKey({ expiresAt: inSeconds(500) }), 60, material, context);
    if ("rejected" in decision) throw new Error(decision.message);
    expect(decision.changed).toEqual([aKey({ version: 4, expiresAt: inSeconds(60) })]);
    expect(published(decision)).toEqual([
      [material.id, 1, inSeconds(500).toISOString()],
      ["aaaaaaaaaaaaaaaa", 4, inSeconds(60).toISOString()],
    ]);
  });

  it.each([59, 60])("does not change an old key that expires in %i seconds anyway", (seconds) => {
    const decision = decideRotate(aKey({ expiresAt: inSeconds(seconds) }), 60, material, context);
    if ("rejected" in decision) throw new Error(decision.message);
    expect(decision.changed).toEqual([]);
    expect(published(decision)).toEqual([[material.id, 1, inSeconds(seconds).toISOString()]]);
  });

  it("has one entry in the audit log, which names both keys", () => {
    expect(decideRotate(aKey(), 60, material, context)).toMatchObject({
      audit: [
        {
          action: "key_rotated",
          keyId: "aaaaaaaaaaaaaaaa",
          before: { expires_at: null },
          after: { expires_at: inSeconds(60).toISOString(), replaced_by: material.id },
        },
      ],
    });
  });

  it.each([
    ["revoked", { revokedAt: inSeconds(-1) }],
    ["expired", { expiresAt: now }],
  ])("rejects a key that is %s", (word, state) => {
    const decision = decideRotate(aKey(state), 60, material, context);
    expect(decision).toMatchObject({ rejected: "CONFLICT_001" });
    expect("rejected" in decision && decision.message).toContain(word);
  });
});

describe("revoking", () => {
  it("publishes a tombstone with the next version", () => {
    const decision = decideRevoke([aKey()], context);
    expect(decision.changed).toEqual([aKey({ version: 4, revokedAt: now })]);
    expect(published(decision)).toEqual([["aaaaaaaaaaaaaaaa", 4, "deleted"]]);
  });

  it("changes nothing the second time", () => {
    const nothing = { changed: [], audit: [], messages: [] };
    expect(decideRevoke([aKey({ revokedAt: inSeconds(-1) })], context)).toEqual(nothing);
  });

  it("is possible after the key has expired", () => {
    const expired = aKey({ expiresAt: inSeconds(-1) });
    expect(decideRevoke([expired], context).changed).toHaveLength(1);
  });
});
