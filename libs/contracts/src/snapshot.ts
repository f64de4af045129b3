import { z } from "zod";
import { AudienceList, Match } from "./audiences.ts";
import { type Checked, compileCheck } from "./json-schema.ts";
import { KeyKind } from "./key-kind.ts";
import { KeyScope } from "./people.ts";
import { ConfiguredLimits } from "./plans.ts";
import { exceptions } from "./protection.ts";
import { State } from "./state.ts";
import { StoredVariations, ValueType } from "./values.ts";

/**
 * The snapshot is the current state that the services share: one entry for each organization, project, environment,
 * API key, and flag in an environment, and one for the plans. The keys of entries consist of ids, because a flag's key
 * may contain characters that a subject may not. Each key of a tenant's entry begins with the organization, so that an
 * edge can follow some organizations only.
 *
 * Each value has a version. A reader keeps the value with the highest version, independently of the order of arrival.
 * A deletion is a value like any other.
 *
 * The deletion of an environment also ends its API keys and flags: a reader treats their entries as deleted, even if
 * they arrive later. The deletion of a project or an organization includes one entry for each of its environments.
 */
const Stamp = {
  version: z.int().min(1),
  /** Commit time of the change. Readers measure the propagation delay with it. */
  committed_at: z.string().meta({ format: "date-time" }),
};

/**
 * Signature of management, in the entries of API keys and of the plans, and in all deletions except those of flags.
 * Without it, write access to the broker would suffice to create or end an API key, or to change the limits of everyone.
 * It covers the key of the entry and all other members. Absent in development without `SIGNING_PRIVATE_KEY`.
 */
const Signed = { signature: z.string().optional() };

const Uuid = z.string().regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);

/** The plans of the installation. It precedes `complete`, so every complete snapshot contains it. */
export const PlansEntry = z.object({
  kind: z.literal("plans"),
  /** The limits of each plan, by its name. Unlike the configuration, they may have members of a later release. */
  limits: z.record(z.string(), z.object(ConfiguredLimits.shape)),
  ...Stamp,
  ...Signed,
});

export const OrganizationEntry = z.object({
  kind: z.literal("organization"),
  organization_id: Uuid,
  name: z.string(),
  /** Readers resolve the limits from the entry of the plans (`resolveLimits`). */
  plan: z.string(),
  project_count: z.int().min(0),
  ...Stamp,
});

export const ProjectEntry = z.object({
  kind: z.literal("project"),
  organization_id: Uuid,
  project_id: Uuid,
  name: z.string(),
  ...Stamp,
});

export const EnvironmentEntry = z.object({
  kind: z.literal("environment"),
  organization_id: Uuid,
  project_id: Uuid,
  environment_id: Uuid,
  name: z.string(),
  /** Absent if the environment is not protected. The scheduler rejects what management would refuse when it is due. */
  protected: z.object({ without_approval: z.array(z.enum(exceptions)) }).optional(),
  ...Stamp,
});

export const KeyEntry = z.object({
  kind: z.literal("key"),
  key_id: z.string().regex(/^[a-z2-7]{16}$/),
  /** Lowercase hexadecimal SHA-256 of the secret. The secret itself is not stored anywhere. */
  secret_sha256: z.string().regex(/^[0-9a-f]{64}$/),
  key_kind: KeyKind,
  organization_id: Uuid,
  project_id: Uuid,
  environment_id: Uuid,
  user_id: Uuid,
  environment_only: z.boolean(),
  /** The most that a server key may do. Absent: write. */
  scope: KeyScope.optional(),
  expires_at: z.string().meta({ format: "date-time" }).nullable(),
  ...Stamp,
  ...Signed,
});

export const FlagEntry = z.object({
  kind: z.literal("flag"),
  organization_id: Uuid,
  project_id: Uuid,
  environment_id: Uuid,
  flag_id: Uuid,
  key: z.string(),
  /** Absent for a boolean flag. */
  value_type: ValueType.optional(),
  variations: StoredVariations.optional(),
  /** The features that the flag needs. A reader that lacks one treats the flag as not found. */
  needs: z.array(z.string()).optional(),
  ...State.shape,
  ...Stamp,
});

/** An audience of a project. Flags refer to it by its key. */
export const AudienceEntry = z.object({
  kind: z.literal("audience"),
  organization_id: Uuid,
  project_id: Uuid,
  audience_id: Uuid,
  key: z.string(),
  match: Match,
  list: AudienceList.optional(),
  /** The features that the audience needs. A reader that lacks one treats the audience as unknown. */
  needs: z.array(z.string()).optional(),
  ...Stamp,
});

/** A chunk of the list of an audience. It is written before the entry of the audience that names it. */
export const ChunkEntry = z.object({
  kind: z.literal("chunk"),
  audience_id: Uuid,
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** The fingerprints in base64. */
  data: z.string(),
  ...Stamp,
});

export const Tombstone = z.object({ deleted: z.literal(true), ...Stamp, ...Signed });

/** The last entry of a full write of the snapshot. Each full write has a new epoch. */
export const CompleteEntry = z.object({
  epoch: Uuid,
  /**
   * A rebuild is in progress. Readers may serve the entries, which may contradict the database. Until the next epoch,
   * readers must not act on a deletion or on a missing entry.
   */
  rebuilding: z.literal(true).optional(),
  /**
   * First sequence of the epoch's entries. The leader purged all earlier ones, but a replica that lags may still
   * deliver them, and consumers do not receive a purge.
   */
  from: z.int().min(1),
  /** Identifies the key pair that signed the entries of API keys. A reader without the public key waits. */
  signed_by: z.string().optional(),
  /** Includes the entry's sequence in the stream, so that a copy of the entry has no valid signature. */
  ...Signed,
});

export type PlansEntry = z.infer<typeof PlansEntry>;
export type OrganizationEntry = z.infer<typeof OrganizationEntry>;
export type ProjectEntry = z.infer<typeof ProjectEntry>;
export type EnvironmentEntry = z.infer<typeof EnvironmentEntry>;
export type KeyEntry = z.infer<typeof KeyEntry>;
export type FlagEntry = z.infer<typeof FlagEntry>;
export type AudienceEntry = z.infer<typeof AudienceEntry>;
export type ChunkEntry = z.infer<typeof ChunkEntry>;
export type Tombstone = z.infer<typeof Tombstone>;
export type CompleteEntry = z.infer<typeof CompleteEntry>;
export type LiveEntry = LiveValues[EntryKind];

/** The kind and the ids in an entry's key. */
export type EntryAddress =
  | { kind: "plans" }
  | { kind: "organization"; organizationId: string }
  | { kind: "project"; organizationId: string; projectId: string }
  | { kind: "environment"; organizationId: string; environmentId: string }
  | { kind: "key"; organizationId: string; keyId: string }
  | { kind: "flag"; organizationId: string; environmentId: string; flagId: string }
  | { kind: "audience"; organizationId: string; projectId: string; audienceId: string }
  | { kind: "chunk"; organizationId: string; audienceId: string; sha256: string };

type LiveValues = {
  plans: PlansEntry;
  organization: OrganizationEntry;
  project: ProjectEntry;
  environment: EnvironmentEntry;
  key: KeyEntry;
  flag: FlagEntry;
  audience: AudienceEntry;
  chunk: ChunkEntry;
};

export type EntryKind = EntryAddress["kind"];

/** A value that may have a signature. */
export type SignedEntry = KeyEntry | PlansEntry | Tombstone;

/** The deletion of an entry of any kind. */
export type Deletion = { address: EntryAddress; value: Tombstone };

/** An entry of one kind: its address, and a value of the same kind. */
export type EntryOf<Kind extends EntryKind> = Kind extends EntryKind
  ? { address: Extract<EntryAddress, { kind: Kind }>; value: LiveValues[Kind] | Tombstone }
  : never;

/** Every entry of the snapshot except `complete`. `isEntryOf` determines the kind. */
export type SnapshotEntry = EntryOf<EntryKind> | Deletion;

/** Returns whether an entry has this kind. TypeScript does not narrow `value` by a comparison of `address.kind`. */
export function isEntryOf<Kind extends EntryKind>(
  kind: Kind,
  entry: SnapshotEntry,
): entry is EntryOf<Kind> {
  return entry.address.kind === kind;
}

/** Key of the entry that marks the snapshot as complete. */
export const completeKey = "complete";

const plansKey = "plans";

/**
 * Filter for the entries of API keys, environments and projects, for services that only authenticate requests. The
 * deletion of an environment ends its keys.
 */
export const keysAndScopesFilter = "*.*.*";

export const everythingFilter = ">";

export function entryKey(address: EntryAddress): string {
  if (address.kind === "plans") return plansKey;
  const organization = address.organizationId;
  switch (address.kind) {
    case "organization":
      return `${organization}.organization`;
    case "project":
      return `${organization}.project.${address.projectId}`;
    case "environment":
      return `${organization}.environment.${address.environmentId}`;
    case "key":
      return `${organization}.key.${address.keyId}`;
    case "flag":
      return `${organization}.flag.${address.environmentId}.${address.flagId}`;
    case "audience":
      return `${organization}.audience.${address.projectId}.${address.audienceId}`;
    case "chunk":
      return `${organization}.chunk.${address.audienceId}.${address.sha256}`;
  }
}

const entryTemplates: Readonly<Record<EntryKind, string>> = {
  plans: plansKey,
  organization: "{organization_id}.organization",
  project: "{organization_id}.project.{project_id}",
  environment: "{organization_id}.environment.{environment_id}",
  key: "{organization_id}.key.{key_id}",
  flag: "{organization_id}.flag.{environment_id}.{flag_id}",
  audience: "{organization_id}.audience.{project_id}.{audience_id}",
  chunk: "{organization_id}.chunk.{audience_id}.{sha256}",
};

/** Returns the key of the entries of a kind, with placeholders. */
export const entryTemplate = (kind: EntryKind): string => entryTemplates[kind];

/**
 * Returns whether management signs an entry: those of API keys and of the plans, and deletions of environments, projects
 * and organizations, which end API keys and make services remove rows.
 */
export function isSignedEntry(
  entry: SnapshotEntry,
): entry is SnapshotEntry & { value: SignedEntry } {
  const { kind } = entry.address;
  if (kind === "key" || kind === "plans") return true;
  return kind !== "flag" && kind !== "audience" && kind !== "chunk" && "deleted" in entry.value;
}

/** Parses an entry's key. Returns undefined for a key that this version does not know. */
export function parseEntryKey(key: string): EntryAddress | undefined {
  if (key === plansKey) return { kind: "plans" };
  const [organizationId = "", kind, first, second, ...rest] = key.split(".");
  if (rest.length > 0) return undefined;
  if (kind === "organization" && first === undefined) return { kind, organizationId };
  if (first === undefined) return undefined;
  if (kind === "flag" && second !== undefined)
    return { kind, organizationId, environmentId: first, flagId: second };
  if (kind === "audience" && second !== undefined)
    return { kind, organizationId, projectId: first, audienceId: second };
  if (kind === "chunk" && second !== undefined)
    return { kind, organizationId, audienceId: first, sha256: second };
  if (second !== undefined) return undefined;
  if (kind === "project") return { kind, organizationId, projectId: first };
  if (kind === "environment") return { kind, organizationId, environmentId: first };
  if (kind === "key") return { kind, organizationId, keyId: first };
  return undefined;
}

const checks = {
  plans: compileCheck(PlansEntry),
  organization: compileCheck(OrganizationEntry),
  project: compileCheck(ProjectEntry),
  environment: compileCheck(EnvironmentEntry),
  key: compileCheck(KeyEntry),
  flag: compileCheck(FlagEntry),
  audience: compileCheck(AudienceEntry),
  chunk: compileCheck(ChunkEntry),
};
const checkTombstone = compileCheck(Tombstone);

/** The members of a flag's or an audience's entry whose form no release changes. */
const LaterFlag = FlagEntry.pick({
  ...{ kind: true, organization_id: true, project_id: true, environment_id: true, flag_id: true },
  ...{ key: true, version: true, committed_at: true },
});
const LaterAudience = AudienceEntry.pick({
  ...{ kind: true, organization_id: true, project_id: true, audience_id: true, key: true },
  ...{ version: true, committed_at: true },
});
const checkLaterFlag = compileCheck(LaterFlag);
const checkLaterAudience = compileCheck(LaterAudience);

/** No evaluator knows this feature, so such a flag is not found and such an audience is unknown. */
const ofLaterRelease = { needs: ["unknown"] };

/** An entry, or its problem. An entry with a problem contains only its known parts. */
type ParsedEntry =
  | { ok: true; value: SnapshotEntry; problem?: string }
  | { ok: false; problem: string };

/**
 * Parses an entry and checks its value against the schema of its address. Returns undefined for a key that this
 * version does not know: a newer management may write other kinds of entries.
 *
 * A flag or an audience of a later release can have a form that this version does not know. It replaces its older
 * version, whose rules no longer apply, and has a word in `needs` that makes it unknown.
 */
export function parseEntry(key: string, value: unknown): ParsedEntry | undefined {
  const address = parseEntryKey(key);
  if (address === undefined) return undefined;
  if (typeof value === "object" && value !== null && "deleted" in value)
    return entryAt(address, checkTombstone(value));
  switch (address.kind) {
    case "plans":
      return entryAt(address, checks.plans(value));
    case "organization":
      return entryAt(address, checks.organization(value));
    case "project":
      return entryAt(address, checks.project(value));
    case "environment":
      return entryAt(address, checks.environment(value));
    case "key":
      return entryAt(address, checks.key(value));
    case "flag":
      return flagAt(address, value);
    case "audience":
      return audienceAt(address, value);
    case "chunk":
      return entryAt(address, checks.chunk(value));
  }
}

function flagAt(address: Extract<EntryAddress, { kind: "flag" }>, value: unknown): ParsedEntry {
  const checked = checks.flag(value);
  if (checked.ok || !checkLaterFlag(value).ok) return entryAt(address, checked);
  const state = { enabled: false, rollout_percentage: 0, targeting_rules: [] };
  const known: FlagEntry = { ...LaterFlag.parse(value), ...state, ...ofLaterRelease };
  return { ok: true, value: { address, value: known }, problem: checked.problem };
}

function audienceAt(
  address: Extract<EntryAddress, { kind: "audience" }>,
  value: unknown,
): ParsedEntry {
  const checked = checks.audience(value);
  if (checked.ok || !checkLaterAudience(value).ok) return entryAt(address, checked);
  const known: AudienceEntry = { ...LaterAudience.parse(value), match: [], ...ofLaterRelease };
  return { ok: true, value: { address, value: known }, problem: checked.problem };
}

function entryAt<Address, Value>(
  address: Address,
  checked: Checked<Value>,
): Checked<{ address: Address; value: Value }> {
  return checked.ok ? { ok: true, value: { address, value: checked.value } } : checked;
}

export const checkCompleteEntry = compileCheck(CompleteEntry);
