import { isDeepStrictEqual } from "node:util";
import {
  type AudienceChange,
  type AudienceEvent,
  type CreateAudience,
  type Match,
  matchOf,
  maxMatchBytes,
  maxProjectListEntries,
  type UpdateAudience,
} from "@halyard/contracts";
import { findMatchProblem } from "@halyard/evaluation";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import type { ChangeContext } from "../access/change-context.ts";
import { type AuditEntry, auditEntry } from "../audit/audit-log.ts";
import { momentAfter } from "../flags/decide-flag.ts";
import { entryToPublish, eventToPublish, type OutboxMessage } from "../outbox/outbox-message.ts";
import {
  type Audience,
  type AudienceDecision,
  type AudienceUse,
  audienceEntry,
  type StoredList,
  summaryOf,
} from "./audience.ts";

/**
 * Rejects alternatives that match the schema and are still unusable: those that are too large for a message, and values
 * that their operator cannot use. Returns the alternatives as they are stored.
 */
export function checkMatch(match: Match): Match | Problem {
  const json = JSON.stringify(match);
  const bytes = Buffer.byteLength(json);
  if (bytes > maxMatchBytes)
    return createProblem(
      "VALIDATION_001",
      `/match must be at most ${maxMatchBytes} bytes as JSON, and this is ${bytes}`,
    );
  const problem = findMatchProblem(match);
  // JSON stores `-0` as `0`.
  if (problem === undefined) return matchOf(JSON.parse(json) as Match);
  return createProblem("VALIDATION_001", `/match${problem.pointer} must be ${problem.expected}`);
}

/** A request with alternatives that `checkMatch` has accepted. */
export type WithCheckedMatch<Request> = Omit<Request, "match"> & { checkedMatch?: Match };

export function checkRequest<Request extends { match?: Match | undefined }>(
  request: Request,
): WithCheckedMatch<Request> | Problem {
  if (request.match === undefined) return request;
  const checkedMatch = checkMatch(request.match);
  return isProblem(checkedMatch) ? checkedMatch : { ...request, checkedMatch };
}

export function decideCreate(
  scope: { organizationId: string; projectId: string },
  request: WithCheckedMatch<CreateAudience>,
  context: ChangeContext,
): AudienceDecision {
  const audience: Audience = {
    id: context.newId(),
    ...scope,
    key: request.key,
    name: request.name,
    description: request.description ?? "",
    match: request.checkedMatch ?? [],
    list: null,
    version: 1,
    createdAt: context.now,
    updatedAt: context.now,
  };
  return decide({ before: null, after: audience, uses: [] }, { change: "created" }, context);
}

/**
 * Decides a change of settings, which can also remove the list. Returns "unchanged" if every requested value is the
 * current one.
 */
export function decideUpdate(
  current: Audience,
  request: WithCheckedMatch<UpdateAudience>,
  uses: readonly AudienceUse[],
  context: ChangeContext,
): AudienceDecision | "unchanged" {
  const { name = current.name, description = current.description, checkedMatch } = request;
  const settings = { name, description, match: checkedMatch ?? current.match };
  const { name: _, description: __, match: ___, ...rest } = current;
  const isSame = isDeepStrictEqual({ ...rest, ...settings }, { ...current });
  const removesList = request.list === null && current.list !== null;
  if (isSame && !removesList) return "unchanged";
  const list = removesList ? null : current.list;
  const after = nextVersion({ ...current, ...settings, list }, context);
  const change = isSame ? "list" : "updated";
  const counted = removesList ? { removed: current.list?.count ?? 0 } : {};
  return decide({ before: current, after, uses }, { change, ...counted }, context);
}

/** Decides a change of entries. `counted` is absent if the change replaced the whole list. */
export function decideList(
  current: Audience,
  {
    list,
    ...counted
  }: { list: StoredList; added?: number | undefined; removed?: number | undefined },
  uses: readonly AudienceUse[],
  context: ChangeContext,
): AudienceDecision {
  const after = nextVersion({ ...current, list }, context);
  return decide({ before: current, after, uses }, { change: "list", ...counted }, context);
}

export function decideDelete(current: Audience, context: ChangeContext): AudienceDecision {
  const after = nextVersion(current, context);
  return decide({ before: current, after, uses: [] }, { change: "deleted" }, context);
}

const nextVersion = (audience: Audience, context: ChangeContext): Audience => ({
  ...audience,
  version: audience.version + 1,
  updatedAt: momentAfter(audience.updatedAt, context.now),
});

type Kind = { change: AudienceChange; added?: number | undefined; removed?: number | undefined };

type Difference = { before: Audience | null; after: Audience; uses: readonly AudienceUse[] };

function decide(difference: Difference, kind: Kind, context: ChangeContext): AudienceDecision {
  const { before, after } = difference;
  const isDeleted = kind.change === "deleted";
  const entry = audienceEntry(after);
  const stamp = { version: after.version, committed_at: after.updatedAt.toISOString() };
  const published: OutboxMessage = isDeleted
    ? entryToPublish({ address: entry.address, value: { deleted: true, ...stamp } })
    : entryToPublish(entry);
  return {
    audience: after,
    history: {
      audienceId: after.id,
      version: after.version,
      change: kind.change,
      name: after.name,
      description: after.description,
      match: kind.change === "list" ? null : after.match,
      list: summaryOf(after.list),
      added: kind.added ?? null,
      removed: kind.removed ?? null,
      changedBy: context.actor.id,
      changedAt: after.updatedAt,
    },
    audit: audienceAudit(difference, kind, context),
    messages: [
      published,
      ...chunkTombstones(before, isDeleted ? null : after, stamp),
      eventToPublish(audienceEvent(difference, kind.change, context)),
    ],
  };
}

/** Returns the tombstones of the chunks that an audience no longer has. */
function chunkTombstones(
  before: Audience | null,
  after: Audience | null,
  stamp: { version: number; committed_at: string },
): OutboxMessage[] {
  const kept = new Set(after?.list?.chunks);
  if (before === null) return [];
  const { organizationId, id: audienceId } = before;
  const gone = [...new Set(before.list?.chunks)].filter((sha256) => !kept.has(sha256));
  return gone.map((sha256) =>
    entryToPublish({
      address: { kind: "chunk", organizationId, audienceId, sha256 },
      value: { deleted: true, ...stamp },
    }),
  );
}

const auditActions = {
  created: "audience_created",
  updated: "audience_changed",
  list: "audience_list_changed",
  deleted: "audience_deleted",
} as const;

function audienceAudit(
  { before, after }: Difference,
  { change, added, removed }: Kind,
  context: ChangeContext,
): AuditEntry {
  const counted = {
    ...(added !== undefined && { added }),
    ...(removed !== undefined && { removed }),
  };
  const settingsOf = ({ name, description, match, list }: Audience) =>
    change === "list"
      ? { name, list: summaryOf(list) }
      : { name, description, match, list: summaryOf(list) };
  return auditEntry(context, {
    projectId: after.projectId,
    environmentId: null,
    audienceKey: after.key,
    action: auditActions[change],
    before: before && settingsOf(before),
    after: change === "deleted" ? null : { ...settingsOf(after), ...counted },
    changedAt: after.updatedAt,
  });
}

/** Maximum number of keys of flags in an event. */
const maxNamedFlags = 100;

function audienceEvent(
  { after, uses }: Difference,
  change: AudienceChange,
  context: ChangeContext,
): AudienceEvent {
  const flags = [...new Set(uses.map(({ flagKey }) => flagKey))].sort();
  const { id, email } = context.actor;
  return {
    id: context.newId(),
    event: "audience.updated",
    timestamp: after.updatedAt.toISOString(),
    version: after.version,
    organization_id: after.organizationId,
    project_id: after.projectId,
    audience: { key: after.key, name: after.name, description: after.description },
    change,
    flags: flags.slice(0, maxNamedFlags),
    flags_total: flags.length,
    triggered_by: { id, email },
    cause: "manual",
  };
}

/** Rejects more entries in the lists of a project. */
export function checkProjectEntries(before: number, after: number): Problem | undefined {
  if (after <= maxProjectListEntries || after <= before) return undefined;
  return createProblem(
    "VALIDATION_001",
    `The lists of a project have at most ${maxProjectListEntries} entries together, and these would have ${after}.`,
  );
}
