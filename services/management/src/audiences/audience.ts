import type {
  AudienceHistoryEntry,
  Audience as AudienceResource,
  EntryOf,
  Match,
} from "@halyard/contracts";
import { needsOfAudience } from "@halyard/evaluation";
import type { AuditEntry } from "../audit/audit-log.ts";
import type { OutboxMessage } from "../outbox/outbox-message.ts";

/** An audience of a project: a named set of users, by conditions and by a list. */
export type Audience = {
  id: string;
  organizationId: string;
  projectId: string;
  key: string;
  name: string;
  description: string;
  match: Match;
  list: StoredList | null;
  /** Every change increments it. */
  version: number;
  createdAt: Date;
  updatedAt: Date;
};

/** The list of an audience. Its entries are rows of other tables. */
export type StoredList = {
  id: string;
  attribute: string;
  /** Number of entries. */
  count: number;
  /** Key of the fingerprints of the project, in hexadecimal digits. */
  fingerprintKey: string;
  /** SHA-256 of each chunk of fingerprints. */
  chunks: readonly string[];
};

/** A state whose rules use an audience. */
export type AudienceUse = {
  flagId: string;
  flagKey: string;
  environmentId: string;
  environmentName: string;
  enabled: boolean;
};

export type AudienceScope = { projectId: string; key: string };

/** A change of an audience, decided before anything is written. */
export type AudienceDecision = {
  audience: Audience;
  history: AudienceHistory;
  audit: AuditEntry;
  messages: readonly OutboxMessage[];
};

/** An audience after a change. */
export type AudienceHistory = Pick<Audience, "name" | "description"> & {
  /** Null if the change concerned only the list. */
  match: Match | null;
  audienceId: string;
  version: number;
  change: AudienceHistoryEntry["change"];
  list: { attribute: string; count: number } | null;
  /** Numbers of entries of the list that the change added and removed. Null if it replaced the list. */
  added: number | null;
  removed: number | null;
  changedBy: string;
  changedAt: Date;
};

export const summaryOf = (list: StoredList | null) =>
  list && { attribute: list.attribute, count: list.count };

/** Returns the snapshot entry of an audience, which names the chunks of its list. */
export function audienceEntry(audience: Audience): EntryOf<"audience"> {
  const { id, organizationId, projectId, key, match } = audience;
  const list = audience.list && {
    attribute: audience.list.attribute,
    count: audience.list.count,
    key: audience.list.fingerprintKey,
    chunks: [...audience.list.chunks],
  };
  const needs = needsOfAudience({ match, ...(list && { list }) });
  return {
    address: { kind: "audience", organizationId, projectId, audienceId: id },
    value: {
      kind: "audience",
      organization_id: organizationId,
      project_id: projectId,
      audience_id: id,
      key,
      match,
      ...(list && { list }),
      ...(needs.length === 0 ? {} : { needs }),
      version: audience.version,
      committed_at: audience.updatedAt.toISOString(),
    },
  };
}

/** A chunk of the list of an audience, as it is stored. */
export type StoredChunk = {
  organizationId: string;
  audienceId: string;
  sha256: string;
  bytes: Buffer;
  version: number;
  committedAt: Date;
};

export function chunkEntry(chunk: StoredChunk): EntryOf<"chunk"> {
  const { organizationId, audienceId, sha256 } = chunk;
  return {
    address: { kind: "chunk", organizationId, audienceId, sha256 },
    value: {
      kind: "chunk",
      audience_id: audienceId,
      sha256,
      data: chunk.bytes.toString("base64"),
      version: chunk.version,
      committed_at: chunk.committedAt.toISOString(),
    },
  };
}

export function audienceResource(
  audience: Audience,
  uses: readonly AudienceUse[],
): AudienceResource {
  return {
    key: audience.key,
    name: audience.name,
    description: audience.description,
    match: audience.match,
    list: summaryOf(audience.list),
    version: audience.version,
    created_at: audience.createdAt.toISOString(),
    updated_at: audience.updatedAt.toISOString(),
    used_by: uses.map(useResource),
  };
}

export const useResource = ({ flagId, flagKey, environmentId }: AudienceUse) => ({
  flag_id: flagId,
  flag_key: flagKey,
  environment_id: environmentId,
});

export function historyResource(entry: AudienceHistory): AudienceHistoryEntry {
  const { added, removed } = entry;
  return {
    version: entry.version,
    change: entry.change,
    name: entry.name,
    description: entry.description,
    ...(entry.match === null ? {} : { match: entry.match }),
    list: entry.list,
    ...(added === null ? {} : { added }),
    ...(removed === null ? {} : { removed }),
    changed_at: entry.changedAt.toISOString(),
    changed_by: entry.changedBy,
  };
}

export function pathOf({ key }: Pick<Audience, "key">): string {
  return `/api/v1/audiences/${key}`;
}
