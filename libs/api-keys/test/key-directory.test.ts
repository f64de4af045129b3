import { randomBytes } from "node:crypto";
import { createKeyDirectory, everyEntryIsGenuine, makeApiKey } from "@halyard/api-keys";
import type { KeyEntry, SnapshotEntry, Tombstone } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";

const now = Date.parse("2027-01-31T09:00:00.000Z");
const uuid = "0192f0c1-0000-7000-8000-000000000001";

describe("given a directory with a key", () => {
  it("verifies the key", () => {
    const { directory, key, id } = directoryWithKey();
    expect(directory.verify(key, now)).toMatchObject({ id, kind: "client", environmentId: uuid });
  });

  it("rejects the same id with another secret", () => {
    const { directory, key } = directoryWithKey();
    const wrong = key.slice(0, -1) + (key.endsWith("A") ? "B" : "A");
    expect(directory.verify(wrong, now)).toBeUndefined();
  });

  it("still rejects wrong secrets after the correct one was verified", () => {
    const { directory, key } = directoryWithKey();
    const wrong = key.slice(0, -1) + (key.endsWith("A") ? "B" : "A");
    for (let round = 0; round < 3; round += 1) {
      expect(directory.verify(key, now)).toBeDefined();
      expect(directory.verify(wrong, now)).toBeUndefined();
    }
  });

  it("accepts the new secret and not the old one after the entry of the key has changed", () => {
    const { directory, key, id, entry } = directoryWithKey();
    expect(directory.verify(key, now)).toBeDefined();
    const other = makeApiKey("client", randomBytes);
    directory.apply(entryOf(id, { ...entry, secret_sha256: other.secretSha256, version: 2 }));
    expect(directory.verify(key, now)).toBeUndefined();
    expect(directory.verify(key.slice(0, 20) + other.key.slice(20), now)).toBeDefined();
  });

  it("returns nothing of the secret", () => {
    const { directory, key, entry } = directoryWithKey();
    for (let round = 0; round < 2; round += 1) {
      const shown = JSON.stringify(directory.verify(key, now));
      expect(shown).not.toContain(key.slice(20));
      expect(shown).not.toContain(entry.secret_sha256);
    }
  });

  it("rejects the key with the prefix of the other kind", () => {
    const { directory, key } = directoryWithKey();
    expect(directory.verify(key.replace("hc_", "hs_"), now)).toBeUndefined();
  });

  it("ends the key at its expiry, and not before", () => {
    const expires = new Date(now).toISOString();
    const { directory, key, id } = directoryWithKey({ expires_at: expires });
    expect(directory.verify(key, now - 1)).toBeDefined();
    expect(directory.verify(key, now)).toBeUndefined();
    expect(directory.find(id, now)).toBeUndefined();
  });

  it("does not restore a revoked key when an older entry arrives", () => {
    const { directory, key, id, entry } = directoryWithKey();
    expect(directory.apply(entryOf(id, revoked(2)))).toBe(true);
    expect(directory.apply(entryOf(id, entry))).toBe(false);
    expect(directory.verify(key, now)).toBeUndefined();
  });

  it("ends the key with its environment, even if a newer entry of the key arrives later", () => {
    const { directory, key, id, entry } = directoryWithKey();
    directory.apply(deletedEnvironment);
    expect(directory.verify(key, now)).toBeUndefined();
    expect(directory.find(id, now)).toBeUndefined();
    directory.apply(entryOf(id, { ...entry, version: 7 }));
    expect(directory.verify(key, now)).toBeUndefined();
  });

  it("ends the key when a full read contains the deletion of its environment", () => {
    const { directory, key, id, entry } = directoryWithKey();
    const read = directory.beginReplacing();
    read.take(deletedEnvironment);
    read.take(entryOf(id, entry));
    expect(directory.verify(key, now)).toBeDefined();
    read.finish();
    expect(directory.verify(key, now)).toBeUndefined();
  });

  it("removes keys that a full read does not contain", () => {
    const { directory, key } = directoryWithKey();
    directory.replace([], []);
    expect(directory.verify(key, now)).toBeUndefined();
  });
});

function directoryWithKey(fields: Partial<KeyEntry> = {}) {
  const made = makeApiKey("client", randomBytes);
  const entry: KeyEntry = {
    kind: "key",
    key_id: made.id,
    secret_sha256: made.secretSha256,
    key_kind: "client",
    organization_id: uuid,
    project_id: uuid,
    environment_id: uuid,
    user_id: uuid,
    environment_only: false,
    expires_at: null,
    version: 1,
    committed_at: "2027-01-01T00:00:00.000Z",
    ...fields,
  };
  const directory = createKeyDirectory(everyEntryIsGenuine);
  directory.replace([[made.id, entry]], []);
  return { directory, entry, ...made };
}

const deletedEnvironment: SnapshotEntry = {
  address: { kind: "environment", organizationId: uuid, environmentId: uuid },
  value: revoked(2),
};

function entryOf(keyId: string, value: KeyEntry | Tombstone): SnapshotEntry {
  return { address: { kind: "key", organizationId: uuid, keyId }, value };
}

function revoked(version: number): Tombstone {
  return { deleted: true, version, committed_at: "2027-01-02T00:00:00.000Z" };
}
