import { randomBytes } from "node:crypto";
import {
  createEntrySigner,
  createKeyDirectory,
  createKeySignatures,
  type KeyDirectory,
  makeApiKey,
  withoutSignature,
} from "@halyard/api-keys";
import { entryKey, type KeyEntry, type Tombstone } from "@halyard/contracts";
import { payloadOf, privateKeyOf, testSigner } from "@halyard/testing";
import { describe, expect, it, jest } from "@jest/globals";
import { pino } from "pino";
import { Registry } from "prom-client";

const now = Date.parse("2027-01-31T09:00:00.000Z");
const organizationId = "0192f0c1-0000-7000-8000-000000000001";
const other = "0192f0c1-0000-7000-8000-000000000002";
const otherSigner = createEntrySigner(privateKeyOf("s"));

describe("given the signed entry of a key", () => {
  it.each<[string, Partial<KeyEntry> | { later_member: string }]>([
    ["kind", { key_kind: "server" }],
    ["project", { project_id: other }],
    ["environment", { environment_id: other }],
    ["organization", { organization_id: other }],
    ["user", { user_id: other }],
    ["restriction to its environment", { environment_only: false }],
    ["expiry", { expires_at: null }],
    ["secret", { secret_sha256: "0".repeat(64) }],
    ["version", { version: 2 }],
    ["commit time", { committed_at: "2099-01-01T00:00:00.000Z" }],
    ["member of a later release", { later_member: "changed" }],
  ])("rejects the entry with another %s", async (_what, changed) => {
    const { address, entry, signatures } = await signedKey();
    expect(signatures.isGenuine(entryKey(address), entry)).toBe(true);
    const forged = { ...entry, ...changed } as KeyEntry;
    expect(signatures.isGenuine(entryKey(address), forged)).toBe(false);
  });

  it("rejects the entry under the id of another key", async () => {
    const { address, entry, signatures } = await signedKey();
    const moved = { ...address, keyId: "a".repeat(16) };
    expect(signatures.isGenuine(entryKey(moved), entry)).toBe(false);
  });

  it.each<[string, (signature: string) => string | undefined]>([
    ["no signature", () => undefined],
    ["a truncated signature", (signature) => signature.slice(0, -1)],
    ["the signature of another entry", (signature) => `${signature.slice(0, 17)}${"A".repeat(86)}`],
    ["an unknown signer", (signature) => `${"0".repeat(16)}${signature.slice(16)}`],
  ])("rejects the entry with %s", async (_what, change) => {
    const { address, entry, signatures } = await signedKey();
    const signature = change(entry.signature ?? "");
    expect(signatures.isGenuine(entryKey(address), { ...entry, signature })).toBe(false);
  });

  it("rejects the signature of another key pair, even with the id of the known signer", async () => {
    const { address, entry, signatures } = await signedKey();
    const key = entryKey(address);
    const forged = await signed(address, entry, otherSigner);
    expect(signatures.isGenuine(key, forged)).toBe(false);
    const renamed = forged.signature?.replace(otherSigner.id, testSigner.id);
    expect(signatures.isGenuine(key, { ...forged, signature: renamed })).toBe(false);
  });

  it("is removed exactly", async () => {
    const { address, entry } = await signedKey();
    const payload = await payloadOf({ address, value: entry });
    const { signature: _, ...content } = entry;
    expect(withoutSignature(payload)).toBe(JSON.stringify(content));
    expect(withoutSignature(JSON.stringify(content))).toBe(JSON.stringify(content));
  });
});

describe("given a directory with a valid key", () => {
  it("keeps the key when forged changes and deletions arrive, and applies the genuine deletion", async () => {
    const { directory, key, address, entry } = await directoryWithKey();
    const deletion: Tombstone = { deleted: true, version: 2, committed_at: entry.committed_at };
    const stolen = makeApiKey("client", randomBytes);
    const taken = { ...entry, version: 9, secret_sha256: stolen.secretSha256 };
    for (const forged of [taken, { ...deletion, version: 9 }, { ...entry, version: 9 }])
      expect(directory.apply({ address, value: forged })).toBe(false);
    const foreign = { ...address, keyId: "a".repeat(16) };
    expect(directory.apply({ address, value: await signed(foreign, deletion) })).toBe(false);
    expect(directory.verify(key, now)).toBeDefined();
    expect(directory.apply({ address, value: await signed(address, deletion) })).toBe(true);
    expect(directory.verify(key, now)).toBeUndefined();
  });

  it("does not restore a revoked key with its earlier entry", async () => {
    const { directory, key, address, entry } = await directoryWithKey();
    const deletion: Tombstone = { deleted: true, version: 2, committed_at: entry.committed_at };
    directory.apply({ address, value: await signed(address, deletion) });
    expect(directory.apply({ address, value: entry })).toBe(false);
    expect(directory.apply({ address, value: { ...entry, version: 3 } })).toBe(false);
    expect(directory.verify(key, now)).toBeUndefined();
  });

  it("does not verify an unchanged entry of a full read again, even with another signature", async () => {
    const { directory, key, address, entry, signatures } = await directoryWithKey();
    expect(directory.verify(key, now)).toBeDefined();
    const isGenuine = jest.spyOn(signatures, "isGenuine");
    read(directory, [[address, await signed(address, entry, otherSigner)]]);
    expect(directory.verify(key, now)).toBeDefined();
    expect(isGenuine).not.toHaveBeenCalled();
  });

  it("verifies a signature once, and only for the correct secret", async () => {
    const { directory, key, address, signatures } = await directoryWithKey();
    const isGenuine = jest.spyOn(signatures, "isGenuine");
    const wrong = key.slice(0, -1) + (key.endsWith("A") ? "B" : "A");
    expect(directory.verify(wrong, now)).toBeUndefined();
    expect(isGenuine).not.toHaveBeenCalled();
    for (let round = 0; round < 3; round += 1) {
      expect(directory.verify(key, now)).toBeDefined();
      expect(directory.find(address.keyId, now)).toBeDefined();
    }
    expect(isGenuine).toHaveBeenCalledTimes(1);
  });
});

describe("given a full read with forged entries", () => {
  it("accepts none of their keys, neither by text nor by id", async () => {
    const { address, entry, key, signatures } = await signedKey();
    const copy = { ...address, keyId: "a".repeat(16) };
    const { signature: _, ...unsigned } = entry;
    const fresh = createKeyDirectory(signatures);
    read(fresh, [
      [copy, entry],
      [address, { ...unsigned, version: 9 }],
    ]);
    for (const keyId of [copy.keyId, address.keyId]) {
      expect(fresh.find(keyId, now)).toBeUndefined();
      expect(fresh.verify(key.replace(address.keyId, keyId), now)).toBeUndefined();
    }
  });

  it("keeps the known key until a read contains a genuine deletion", async () => {
    const { address, entry, key, directory } = await directoryWithKey();
    const deletion: Tombstone = { deleted: true, version: 2, committed_at: entry.committed_at };
    for (const forged of [deletion, { ...entry, version: 9 }]) {
      read(directory, [[address, forged]]);
      expect(directory.verify(key, now)).toBeDefined();
    }
    read(directory, [[address, await signed(address, deletion)]]);
    expect(directory.verify(key, now)).toBeUndefined();
  });

  it("prefers the deletion to an older entry of the same key in another organization", async () => {
    const { address, entry, key, directory } = await directoryWithKey();
    const deletion: Tombstone = { deleted: true, version: 2, committed_at: entry.committed_at };
    read(directory, [
      [address, await signed(address, deletion)],
      [{ ...address, organizationId: other }, entry],
    ]);
    expect(directory.verify(key, now)).toBeUndefined();
  });
});

describe("given many rejected entries", () => {
  it("counts all and logs one line", async () => {
    const { address, entry, lines, registry, signatures } = await signedKey();
    for (let version = 2; version < 102; version += 1)
      signatures.isGenuine(entryKey(address), { ...entry, version });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(address.keyId);
    const metric = await registry.getSingleMetricAsString(
      "halyard_snapshot_signatures_rejected_total",
    );
    expect(metric).toMatch(/ 100$/);
  });
});

describe("given no public keys", () => {
  it("accepts every entry and logs a warning", async () => {
    const lines: string[] = [];
    const signatures = createKeySignatures({
      publicKeys: undefined,
      metrics: new Registry(),
      logger: pino({ level: "warn" }, { write: (line: string) => lines.push(line) }),
    });
    const { address, entry } = await signedKey();
    const { signature: _, ...unsigned } = entry;
    expect(signatures.trusts(undefined)).toBe(true);
    expect(signatures.isGenuine(entryKey(address), unsigned)).toBe(true);
    expect(lines).toHaveLength(1);
  });
});

type Address = { kind: "key"; organizationId: string; keyId: string };

function read(
  directory: KeyDirectory,
  entries: readonly (readonly [Address, KeyEntry | Tombstone])[],
): void {
  const { take, finish } = directory.beginReplacing();
  for (const [address, value] of entries) take({ address, value });
  finish();
}

async function signed<E extends KeyEntry | Tombstone>(
  address: Address,
  value: E,
  signer = testSigner,
): Promise<E> {
  return JSON.parse(await payloadOf({ address, value }, signer)) as E;
}

async function signedKey() {
  const made = makeApiKey("client", randomBytes);
  const address: Address = { kind: "key", organizationId, keyId: made.id };
  const entry = await signed<KeyEntry>(address, {
    kind: "key",
    key_id: made.id,
    secret_sha256: made.secretSha256,
    key_kind: "client",
    organization_id: organizationId,
    project_id: organizationId,
    environment_id: organizationId,
    user_id: organizationId,
    environment_only: true,
    expires_at: "2027-02-01T00:00:00.000Z",
    version: 1,
    committed_at: "2027-01-01T00:00:00.000Z",
  });
  const lines: string[] = [];
  const registry = new Registry();
  const signatures = createKeySignatures({
    publicKeys: [testSigner.publicKey],
    metrics: registry,
    logger: pino({ level: "warn" }, { write: (line: string) => lines.push(line) }),
  });
  return { address, entry, key: made.key, lines, registry, signatures };
}

async function directoryWithKey() {
  const made = await signedKey();
  const directory = createKeyDirectory(made.signatures);
  directory.replace([[made.address.keyId, made.entry]], []);
  return { directory, ...made };
}
