import { z } from "zod";
import { type Checked, compileCheck } from "./json-schema.ts";
import { PlanLimits } from "./plans.ts";
import { TargetingRules } from "./rules.ts";

/**
 * The snapshot is what every service may know without asking: one entry for each organization,
 * project, environment, API key, and flag in an environment. Keys are made of ids only, because a
 * flag's own key may hold characters that a subject may not. The organization stands first, so that
 * an edge can follow the share of the organizations that it serves.
 *
 * Each value carries the version of what it describes. A reader keeps the highest version that it has
 * seen and ignores the rest, in whatever order they come. A deletion is a value like any other.
 *
 * The deletion of an environment also ends the API keys and flags in it: a reader treats their entries as deleted,
 * whenever they arrive. Deletions of projects and organizations come with those of their environments.
 */
const Stamp = {
  version: z.int().min(1),
  /** When the change was committed; readers measure how long it took to reach them. */
  committed_at: z.string().meta({ format: "date-time" }),
};

/**
 * Management signs the entries of API keys and all deletions but those of flags, so that write access to the broker
 * neither makes nor ends a key. The signature covers the key of the entry and all other members. Release 0.1.0 does not write
 * this member.
 */
const Signed = { signature: z.string().optional() };

const Uuid = z.string().regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);

export const OrganizationEntry = z.object({
  kind: z.literal("organization"),
  organization_id: Uuid,
  name: z.string(),
  plan: z.string(),
  // Unlike the configuration of plans, an entry may have limits of a later release.
  limits: z.object(PlanLimits.shape),
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
  ...Stamp,
});

export const KeyEntry = z.object({
  kind: z.literal("key"),
  key_id: z.string().regex(/^[a-z2-7]{16}$/),
  /** Lowercase hexadecimal SHA-256 of the secret; the secret itself is kept nowhere. */
  secret_sha256: z.string().regex(/^[0-9a-f]{64}$/),
  key_kind: z.enum(["client", "server"]),
  organization_id: Uuid,
  project_id: Uuid,
  environment_id: Uuid,
  user_id: Uuid,
  environment_only: z.boolean(),
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
  enabled: z.boolean(),
  rollout_percentage: z.int().min(0).max(100),
  targeting_rules: TargetingRules,
  ...Stamp,
});

export const Tombstone = z.object({ deleted: z.literal(true), ...Stamp, ...Signed });

/** Ends a full write of the snapshot; another epoch means that everything was written anew. */
export const CompleteEntry = z.object({
  epoch: Uuid,
  /**
   * A rebuild is under way. Entries can be served, but they may contradict the database: until the next
   * epoch, nothing may be concluded from a deletion or an absence.
   */
  rebuilding: z.literal(true).optional(),
  /**
   * First sequence of the epoch's entries. The leader purged all earlier entries, but a replica that lags may
   * still deliver them, and a purge is never delivered. Release 0.1.0 does not write this member.
   */
  from: z.int().min(1).optional(),
  /** Identifies the key pair that signed the entries of API keys. A reader without the public key waits. */
  signed_by: z.string().optional(),
  /** Includes the entry's sequence in the stream, so that a copy of the entry has no valid signature. */
  ...Signed,
});

export type OrganizationEntry = z.infer<typeof OrganizationEntry>;
export type ProjectEntry = z.infer<typeof ProjectEntry>;
export type EnvironmentEntry = z.infer<typeof EnvironmentEntry>;
export type KeyEntry = z.infer<typeof KeyEntry>;
export type FlagEntry = z.infer<typeof FlagEntry>;
export type Tombstone = z.infer<typeof Tombstone>;
export type CompleteEntry = z.infer<typeof CompleteEntry>;
export type LiveEntry = OrganizationEntry | ProjectEntry | EnvironmentEntry | KeyEntry | FlagEntry;

/** What an entry's key says about it, without its value. */
export type EntryAddress =
  | { kind: "organization"; organizationId: string }
  | { kind: "project"; organizationId: string; projectId: string }
  | { kind: "environment"; organizationId: string; environmentId: string }
  | { kind: "key"; organizationId: string; keyId: string }
  | { kind: "flag"; organizationId: string; environmentId: string; flagId: string };

type LiveValues = {
  organization: OrganizationEntry;
  project: ProjectEntry;
  environment: EnvironmentEntry;
  key: KeyEntry;
  flag: FlagEntry;
};

export type EntryKind = EntryAddress["kind"];

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

/** The key of the entry that says that the snapshot is complete. */
export const completeKey = "complete";

/**
 * The entries of API keys, environments and projects, for services that only need to know who is asking. The deletion
 * of an environment ends its keys.
 */
export const keysAndScopesFilter = "*.*.*";

/** Every entry. */
export const everythingFilter = ">";

/** The key under which an entry stands in the snapshot. */
export function entryKey(address: EntryAddress): string {
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
  }
}

/**
 * Returns whether management signs an entry: those of API keys, and deletions of environments, projects and
 * organizations, which end API keys and make services remove rows.
 */
export function isSignedEntry(
  entry: SnapshotEntry,
): entry is SnapshotEntry & { value: KeyEntry | Tombstone } {
  const { kind } = entry.address;
  return kind === "key" || (kind !== "flag" && "deleted" in entry.value);
}

/** Reads an entry's key; undefined for one that this version does not know. */
export function parseEntryKey(key: string): EntryAddress | undefined {
  const [organizationId = "", kind, first, second, ...rest] = key.split(".");
  if (rest.length > 0) return undefined;
  if (kind === "organization" && first === undefined) return { kind, organizationId };
  if (first === undefined) return undefined;
  if (kind === "flag" && second !== undefined)
    return { kind, organizationId, environmentId: first, flagId: second };
  if (second !== undefined) return undefined;
  if (kind === "project") return { kind, organizationId, projectId: first };
  if (kind === "environment") return { kind, organizationId, environmentId: first };
  if (kind === "key") return { kind, organizationId, keyId: first };
  return undefined;
}

const checks = {
  organization: compileCheck(OrganizationEntry),
  project: compileCheck(ProjectEntry),
  environment: compileCheck(EnvironmentEntry),
  key: compileCheck(KeyEntry),
  flag: compileCheck(FlagEntry),
};
const checkTombstone = compileCheck(Tombstone);

/**
 * Parses an entry and checks its value against the schema of its address. Returns undefined for a key that this
 * version does not know: a newer management may write other kinds of entries.
 */
export function parseEntry(key: string, value: unknown): Checked<SnapshotEntry> | undefined {
  const address = parseEntryKey(key);
  if (address === undefined) return undefined;
  if (typeof value === "object" && value !== null && "deleted" in value)
    return entryAt(address, checkTombstone(value));
  switch (address.kind) {
    case "organization":
      return entryAt(address, checks.organization(value));
    case "project":
      return entryAt(address, checks.project(value));
    case "environment":
      return entryAt(address, checks.environment(value));
    case "key":
      return entryAt(address, checks.key(value));
    case "flag":
      return entryAt(address, checks.flag(value));
  }
}

function entryAt<Address, Value>(
  address: Address,
  checked: Checked<Value>,
): Checked<{ address: Address; value: Value }> {
  return checked.ok ? { ok: true, value: { address, value: checked.value } } : checked;
}

export const checkCompleteEntry = compileCheck(CompleteEntry);
