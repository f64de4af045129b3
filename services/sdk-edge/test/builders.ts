import { createHash, randomBytes } from "node:crypto";
import { makeApiKey } from "@halyard/api-keys";
import {
  type AudienceEntry,
  defaultPlans,
  type EntryOf,
  type FlagEntry,
  type KeyEntry,
  type OrganizationEntry,
  type PlanLimits,
  type PlansEntry,
  type SnapshotEntry,
  type Tombstone,
} from "@halyard/contracts";
import { bytesOfHex, SipHash } from "@halyard/evaluation";

/** Builders of snapshot entries. */

/** Returns a readable, constant id: `id("env", 1)` is the same in all tests. */
export function id(
  kind: "org" | "project" | "env" | "flag" | "user" | "epoch" | "audience",
  number = 1,
): string {
  const kinds = { org: 1, project: 2, env: 3, flag: 4, user: 5, epoch: 6, audience: 7 };
  return `01920000-0000-7000-8${kinds[kind]}00-${String(number).padStart(12, "0")}`;
}

/** Returns the time `seconds` after the start of the tests' time, in the format of management. */
export function at(seconds: number): string {
  return new Date(Date.parse("2027-01-31T09:00:00.000Z") + seconds * 1_000).toISOString();
}

export function flagEntry(fields: Partial<FlagEntry> = {}): SnapshotEntry {
  const value: FlagEntry = {
    kind: "flag",
    organization_id: id("org"),
    project_id: id("project"),
    environment_id: id("env"),
    flag_id: id("flag"),
    key: "checkout",
    enabled: false,
    rollout_percentage: 100,
    targeting_rules: [],
    version: 1,
    committed_at: at(fields.version ?? 1),
    ...fields,
  };
  return { address: flagAddress(value.flag_id, value.environment_id), value };
}

/**
 * Returns an enabled flag with the JSON texts of its values by variation. It serves the first variation. The last one is
 * its off variation.
 */
export function typedFlag(
  valueType: FlagEntry["value_type"],
  values: Readonly<Record<string, string>>,
  fields: Partial<FlagEntry> = {},
): SnapshotEntry {
  const variations = Object.entries(values).map(([key, json]) => ({ key, json }));
  return flagEntry({
    enabled: true,
    value_type: valueType,
    variations,
    serve: { variation: variations[0]?.key ?? "" },
    off_variation: variations.at(-1)?.key ?? null,
    ...fields,
  });
}

/** Returns a split with one range for each variation. */
export function splitOf(weights: Readonly<Record<string, number>>): FlagEntry["serve"] {
  let end = 0;
  const split = Object.entries(weights).map(([variation, weight]) => {
    const begin = end;
    end += weight * 100;
    return { variation, weight, ranges: [[begin, end] satisfies [number, number]] };
  });
  return { split };
}

export function deletedFlag(
  version: number,
  flagId = id("flag"),
  environmentId = id("env"),
): SnapshotEntry {
  return { address: flagAddress(flagId, environmentId), value: tombstone(version) };
}

/** Returns an audience without members. */
export function audienceEntry(fields: Partial<AudienceEntry> = {}): EntryOf<"audience"> {
  const value: AudienceEntry = {
    kind: "audience",
    organization_id: id("org"),
    project_id: id("project"),
    audience_id: id("audience"),
    key: "beta",
    match: [],
    version: 1,
    committed_at: at(fields.version ?? 1),
    ...fields,
  };
  return { address: audienceAddress(value.audience_id), value };
}

export function deletedAudience(version: number, audienceId = id("audience")): SnapshotEntry {
  return { address: audienceAddress(audienceId), value: tombstone(version) };
}

const audienceAddress = (audienceId: string) => ({
  ...{ kind: "audience" as const, organizationId: id("org"), projectId: id("project"), audienceId },
});

/** Returns an audience with a list of these users, and the chunks that the list names, 2^`bits` of them. */
export function listedAudience(
  users: readonly string[],
  { bits = 0, attribute = "id", ...fields }: Partial<AudienceEntry> & ListOptions = {},
): { audience: EntryOf<"audience">; chunks: EntryOf<"chunk">[] } {
  const key = "000102030405060708090a0b0c0d0e0f";
  const buffers = fingerprintChunks(users, { key, bits });
  const chunks = buffers.map((bytes) => chunkEntry(bytes, fields.version, fields.audience_id));
  const list = { attribute, count: users.length, key, chunks: chunks.map(sha256Of) };
  return { audience: audienceEntry({ ...fields, list }), chunks };
}

type ListOptions = { bits?: number; attribute?: string };

function fingerprintChunks(
  users: readonly string[],
  { key, bits }: { key: string; bits: number },
): Buffer[] {
  const hash = new SipHash(bytesOfHex(key));
  const fingerprints = users.map((user) => {
    hash.hash(user);
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32BE(hash.high);
    bytes.writeUInt32BE(hash.low, 4);
    return bytes;
  });
  const chunkOf = (bytes: Buffer) => (bits === 0 ? 0 : bytes.readUInt32BE() >>> (32 - bits));
  return Array.from({ length: 2 ** bits }, (_, index) =>
    Buffer.concat(fingerprints.filter((one) => chunkOf(one) === index).sort(Buffer.compare)),
  );
}

export function chunkEntry(
  bytes: Buffer,
  version = 1,
  audienceId = id("audience"),
): EntryOf<"chunk"> {
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const value = {
    ...{ kind: "chunk" as const, audience_id: audienceId, sha256, version },
    ...{ data: bytes.toString("base64"), committed_at: at(version) },
  };
  return { address: chunkAddress(audienceId, sha256), value };
}

export const sha256Of = ({ address: { sha256 } }: EntryOf<"chunk">): string => sha256;

export function deletedChunk({ address }: EntryOf<"chunk">, version: number): SnapshotEntry {
  return { address, value: tombstone(version) };
}

const chunkAddress = (audienceId: string, sha256: string) => ({
  ...{ kind: "chunk" as const, organizationId: id("org"), audienceId, sha256 },
});

export function deletedEnvironment(environmentId = id("env"), version = 2): SnapshotEntry {
  return {
    address: { kind: "environment", organizationId: id("org"), environmentId },
    value: tombstone(version),
  };
}

function flagAddress(flagId: string, environmentId: string) {
  return { kind: "flag" as const, organizationId: id("org"), environmentId, flagId };
}

function tombstone(version: number, committedAt = at(version)): Tombstone {
  return { deleted: true, version, committed_at: committedAt };
}

/** The default plans, with these limits of `pro`. */
export function plansEntry(version = 1, limits: Partial<PlanLimits> = {}): SnapshotEntry {
  const pro = { ...(defaultPlans.pro as PlanLimits), ...limits };
  const value: PlansEntry = {
    kind: "plans",
    limits: { ...defaultPlans, pro },
    version,
    committed_at: at(version),
  };
  return { address: { kind: "plans" }, value };
}

/** The entries of an organization on `pro` with these limits. */
export function organizationWith(limits: Partial<PlanLimits> = {}): SnapshotEntry[] {
  return [plansEntry(1, limits), organizationEntry()];
}

export function organizationEntry(version = 1, plan = "pro"): SnapshotEntry {
  const value: OrganizationEntry = {
    kind: "organization",
    organization_id: id("org"),
    name: `Ropes, version ${version}`,
    plan,
    project_count: 1,
    version,
    committed_at: at(version),
  };
  return { address: { kind: "organization", organizationId: id("org") }, value };
}

/** Creates a valid API key: its text, its id and its entry. */
export function apiKey(fields: Partial<KeyEntry> = {}): {
  text: string;
  keyId: string;
  entry: EntryOf<"key">;
} {
  const made = makeApiKey(fields.key_kind ?? "client", randomBytes);
  const value: KeyEntry = {
    kind: "key",
    key_id: made.id,
    secret_sha256: made.secretSha256,
    key_kind: "client",
    organization_id: id("org"),
    project_id: id("project"),
    environment_id: id("env"),
    user_id: id("user"),
    environment_only: false,
    expires_at: null,
    version: 1,
    committed_at: at(0),
    ...fields,
  };
  return { text: made.key, keyId: made.id, entry: { address: keyAddress(made.id), value } };
}

export function revokedKey(keyId: string, version = 2): EntryOf<"key"> {
  return { address: keyAddress(keyId), value: tombstone(version) };
}

function keyAddress(keyId: string) {
  return { kind: "key" as const, organizationId: id("org"), keyId };
}
