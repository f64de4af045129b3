import { createProblem, isProblem, type Problem } from "@halyard/http";
import {
  type Author,
  type Cause,
  type ChangeContext,
  readContext,
  serviceActor,
  type TimeAndIds,
} from "../access/change-context.ts";
import type { Principal } from "../access/principal.ts";
import { changeAudience, changeEntries } from "../audiences/audience-changes.ts";
import { checkMatch } from "../audiences/decide-audience.ts";
import { decideChange } from "../flags/decide-flag.ts";
import type { HistoryEntry } from "../flags/flag.ts";
import { changeFlag, decideUnderLock, removeFlag } from "../flags/flag-changes.ts";
import { asRequestProblem, checkReferences, hasReferences } from "../flags/references.ts";
import { checkRestorable } from "../flags/variations.ts";
import type { Write, Writer } from "../outbox/write.ts";
import { type Approval, approvalNeeded } from "../protection/protection.ts";
import { changeEnvironment } from "../tenancy/environment-changes.ts";
import { holdRoles } from "../tenancy/organization-store.ts";
import { lockBase, type Place } from "./base.ts";
import {
  type ChangeRequest,
  type DecidedChange,
  differencesOf,
  type NeededApproval,
  nextStep,
  type StateChange,
} from "./change-request.ts";
import { checkMayApply, checkMayBypass } from "./may-apply.ts";
import { record } from "./record-request.ts";
import { hasEnded, mayView, noSuchRequest, type RequestAndStanding } from "./request-changes.ts";
import { lockRequest, updateRequest } from "./request-store.ts";
import { isStale } from "./review-request.ts";
import { neededApprovals, noStanding, readCountedApprovals } from "./standing.ts";

/**
 * The application of a change request: all changes in one transaction, or none. It locks everything that the changes refer
 * to, and compares it with what was approved. The status is in the same transaction, so nothing is applied twice.
 */

/** A request is applied by a caller, or at its `apply_at`. */
export type Applier =
  | { by: "caller"; principal: Principal; author: Author; bypassReason?: string }
  | { by: "time" };

/** The problem of a request that cannot be applied, with the status that it gets after the transaction is rolled back. */
type Unapplied = Problem & { becomes: "stale" | "open" };

const unapplied = (problem: Problem, becomes: Unapplied["becomes"]): Unapplied => ({
  ...{ ...problem, becomes },
});

const isUnapplied = (problem: Problem): problem is Unapplied => "becomes" in problem;

/** Applies a request whose time has come. The outcome of one that cannot be applied is recorded too. */
export async function applyDue(
  writer: Writer,
  timeAndIds: TimeAndIds,
  id: string,
): Promise<RequestAndStanding | Problem> {
  const applier: Applier = { by: "time" };
  const done = await writer((write) => applyRequest({ ...write, ...timeAndIds }, id, applier));
  if (isProblem(done))
    await writer((write) => recordUnapplied({ ...write, ...timeAndIds }, done, { id, applier }));
  return done;
}

/** Records why an approved request was not applied. The transaction that applies it is rolled back. */
export async function recordUnapplied(
  write: Write & TimeAndIds,
  problem: Problem,
  { id, applier }: { id: string; applier: Applier },
): Promise<object> {
  // At its time, a request is tried once.
  const becomes = isUnapplied(problem) ? problem.becomes : applier.by === "time" ? "stale" : null;
  if (becomes === null) return {};
  const request = await lockRequest(write.tx, { id, projectId: projectOf(applier) });
  if (request?.status !== "approved") return {};
  if (applier.by === "time" && !isDue(request, write.now())) return {};
  const changed = { ...request, status: becomes, ...nextStep(request, write.now()) };
  await updateRequest(write.tx, changed);
  const context = () =>
    applier.by === "time" ? unattended(write) : contextOf(write, request, applier);
  const action = becomes === "stale" ? "change_request_stale" : "change_request_reopened";
  await record({ ...write, context }, action, changed, request);
  return changed;
}

/** Returns the context of what no person has found. */
export const unattended = async ({ now, newId }: TimeAndIds): Promise<ChangeContext> => ({
  ...{ actor: serviceActor("management"), apiKeyId: null, via: null, cause: "scheduled" },
  ...{ now: now(), newId },
});

export async function applyRequest(
  write: Write & TimeAndIds,
  id: string,
  applier: Applier,
): Promise<RequestAndStanding | Problem> {
  const { tx, now } = write;
  const projectId = projectOf(applier);
  const request = await lockRequest(tx, { id, projectId });
  if (request === undefined || !maySee(applier, request)) return noSuchRequest;
  // Otherwise a role could be withdrawn between the count of the approvals and the commit.
  await holdRoles(tx, request.organizationId);
  const { place, base } = await lockBase(tx, request.projectId, request.changes);
  const ended = { request, place, standing: noStanding };
  if (request.status === "applied") return ended;
  const differences = differencesOf(request.base, base);
  const wrongStatus = checkStatus(request, applier, { differences, now: now() });
  if (wrongStatus !== undefined) return wrongStatus;
  const unpermitted = checkCaller(request, applier, { place, now });
  if (unpermitted !== undefined) return unpermitted;
  if (differences.length > 0) return unapplied(isStale({ differences }), "stale");
  const counted = await readCountedApprovals(tx, request);
  const needed = neededApprovals(request, place, counted);
  const refused = isBypass(applier) ? undefined : checkApprovals(needed);
  if (refused !== undefined) return refused;
  const applied = await applyChanges(write, request, applier);
  if (isProblem(applied)) return applied;
  const guarded = new Set(needed.map(({ environment }) => environment.id));
  const bypassReason = applier.by === "caller" ? (applier.bypassReason ?? null) : null;
  const closed: ChangeRequest = {
    ...{ ...request, status: "applied", appliedAt: now(), ...nextStep(request, now()) },
    ...{ causeId: request.id, bypassReason },
    appliedEntries: applied.flatMap((entry) => (guarded.has(entry.environmentId) ? entry.id : [])),
    closedBy: closerOf(applier),
  };
  await updateRequest(tx, closed);
  const action = bypassReason === null ? "change_request_applied" : "change_request_bypassed";
  const context = () => contextOf(write, request, applier);
  await record({ ...write, context }, action, closed, request);
  return { ...ended, request: closed };
}

const projectOf = (applier: Applier): string | null =>
  applier.by === "caller" && applier.principal.kind === "key"
    ? applier.principal.key.projectId
    : null;

const maySee = (applier: Applier, request: ChangeRequest): boolean =>
  applier.by === "time" ||
  applier.principal.kind === "operator" ||
  mayView(applier.principal.key, request);

const closerOf = (applier: Applier): string | null =>
  applier.by === "caller" && applier.principal.kind === "key" ? applier.principal.key.userId : null;

const isBypass = (applier: Applier): boolean =>
  applier.by === "caller" && applier.bypassReason !== undefined;

function checkStatus(
  request: ChangeRequest,
  applier: Applier,
  { differences, now }: { differences: readonly string[]; now: Date },
): Problem | undefined {
  const { status, applyAt } = request;
  if (status === "rejected" || status === "withdrawn") return hasEnded(request);
  if (status === "stale") return isStale({ differences });
  if (isBypass(applier)) return undefined;
  if (status === "draft") return createProblem("CONFLICT_001", "The change request is a draft.");
  // The time can have been edited since the search for due requests.
  if (applier.by === "time") return isDue(request, now) ? undefined : notDue;
  if (applyAt !== null && applyAt > now)
    return createProblem(
      "CONFLICT_001",
      `Halyard applies this change request at ${applyAt.toISOString()}. To apply it now, remove /apply_at.`,
    );
  return undefined;
}

const isDue = ({ applyAt }: ChangeRequest, now: Date): boolean =>
  applyAt !== null && applyAt <= now;

const notDue = createProblem("CONFLICT_001", "The change request has another time now.");

/** Checks the rights of the caller. The rights for a time were checked when it was set. */
function checkCaller(
  request: ChangeRequest,
  applier: Applier,
  { place, now }: { place: Place; now: () => Date },
): Problem | undefined {
  if (applier.by === "time") return undefined;
  const { principal, bypassReason } = applier;
  return bypassReason === undefined
    ? checkMayApply(request, principal, place)
    : checkMayBypass(request, principal, now);
}

function checkApprovals(needed: readonly NeededApproval[]): Problem | undefined {
  const lacking = needed.filter(({ approvals, given }) => given < approvals);
  if (lacking.length === 0) return undefined;
  return unapplied(
    approvalNeeded(
      lacking.map(({ environment }) => environment),
      { advice: " Its approvals are missing, or no longer count." },
    ),
    "open",
  );
}

/** Applies changes. Returns the history entries of the changed states. */
async function applyChanges(
  write: Write & TimeAndIds,
  request: ChangeRequest,
  applier: Applier,
): Promise<HistoryEntry[] | Problem> {
  const { changes, projectId, id } = request;
  const approval: Approval = { requestId: id };
  const shared = await contextOf(write, request, applier);
  const context = async () => shared;
  const change: ApprovedWrite = { ...write, context, approval };
  const entries: HistoryEntry[] = [];
  let index = 0;
  for (const group of inGroups(changes)) {
    const done = await Promise.all(group.map((each) => applyChange(change, projectId, each)));
    for (const each of done) {
      if (isProblem(each)) return { ...each, message: `/changes/${index}: ${each.message}` };
      entries.push(...each.entries);
      index += 1;
    }
  }
  return entries;
}

/** Maximum number of changes whose statements are sent without a wait for the results of the others. */
const maxTogether = 20;

/**
 * Divides changes into groups, in their order. The changes of a group do not depend on each other: they are states of
 * different flags without references, or a single other change.
 */
function inGroups(changes: readonly DecidedChange[]): DecidedChange[][] {
  const groups: DecidedChange[][] = [];
  const flags = new Set<string>();
  for (const change of changes) {
    const isFree = change.kind === "state" && !hasReferences(change.after);
    const last = groups.at(-1);
    const fits = isFree && flags.size > 0 && flags.size < maxTogether && !flags.has(change.flag_id);
    if (last !== undefined && fits) last.push(change);
    else {
      groups.push([change]);
      flags.clear();
    }
    if (isFree) flags.add(change.flag_id);
  }
  return groups;
}

type ApprovedWrite = Write &
  TimeAndIds & { context: () => Promise<ChangeContext>; approval: Approval };
type Applied = { entries: readonly HistoryEntry[] };

async function applyChange(
  write: ApprovedWrite,
  projectId: string,
  change: DecidedChange,
): Promise<Applied | Problem> {
  switch (change.kind) {
    case "state":
      return applyState(write, projectId, change);
    case "flag_variations": {
      const scope = { projectId, flagId: change.flag_id };
      return resultOf(await changeVariations(write, scope, change.variations));
    }
    case "flag_deletion": {
      const scope = await scopeOf(write, { projectId, flagId: change.flag_id });
      return resultOf(await removeFlag(write, { scope }));
    }
    case "audience": {
      const { patch, audience: key } = change;
      const match = patch.match === undefined ? undefined : checkMatch(patch.match);
      if (match !== undefined && isProblem(match)) return match;
      const settings = {
        ...(match !== undefined && { checkedMatch: match }),
        ...(patch.list === null && { list: null }),
      };
      return resultOf(
        await changeAudience(write, { scope: { projectId, key }, permit: permitAll }, settings),
      );
    }
    case "audience_list": {
      const { add, remove, audience: key } = change;
      const entries = { add: [...add], remove: [...remove] };
      return resultOf(
        await changeEntries(write, { scope: { projectId, key }, permit: permitAll }, entries),
      );
    }
    case "protection": {
      const { environment_id: environmentId, protected: requested } = change;
      // The approval replaces the rights of the caller.
      const principal: Principal = { kind: "operator" };
      const address = { projectId, environmentId };
      return resultOf(
        await changeEnvironment({ ...write, principal }, address, { protected: requested }),
      );
    }
  }
}

const permitAll = () => undefined;

const resultOf = (done: object | Problem): Applied | Problem =>
  isProblem(done) ? done : { entries: [] };

/** Restores the decided state. Its base is locked and the same, so that the values before are those that were approved. */
async function applyState(
  write: ApprovedWrite,
  projectId: string,
  { flag_id: flagId, environment_id: environmentId, after }: StateChange,
): Promise<Applied | Problem> {
  const scope = { projectId, flagId, environmentId };
  const done = await decideUnderLock(write, { scope }, async (current, context) => {
    const { flag } = current;
    const lost = checkRestorable(flag, after);
    if (lost !== undefined) return lost;
    const wrong = await checkReferences(write.tx, { flag, environmentId }, after);
    if (wrong !== undefined) return asRequestProblem(wrong);
    return decideChange(current, { content: after }, context);
  });
  if (isProblem(done)) return done;
  const { decision } = done;
  return { entries: decision === "unchanged" ? [] : decision.history };
}

async function changeVariations(
  write: ApprovedWrite,
  flag: { projectId: string; flagId: string },
  variations: Extract<DecidedChange, { kind: "flag_variations" }>["variations"],
) {
  return changeFlag(write, { scope: await scopeOf(write, flag) }, { variations });
}

/** Use cases of a whole flag address it by one of its environments. */
async function scopeOf(
  { tx }: ApprovedWrite,
  { projectId, flagId }: { projectId: string; flagId: string },
) {
  const [first] = await tx<{ id: string }[]>`
    select id from environments where project_id = ${projectId} order by id limit 1`;
  return { projectId, flagId, environmentId: first?.id ?? "" };
}

/** The author of the changes is who applies them; at `apply_at` the author of the request. */
async function contextOf(
  { tx, now, newId }: Write & TimeAndIds,
  { id: causeId, createdBy }: ChangeRequest,
  applier: Applier,
): Promise<ChangeContext> {
  const byTime: Author = { userId: createdBy, apiKeyId: null, via: "change_request" };
  const author = applier.by === "time" ? byTime : viaRequest(applier.author);
  const cause: Cause = applier.by === "time" ? "scheduled" : "manual";
  return { ...(await readContext(tx, { author, cause }, { now, newId })), causeId };
}

const viaRequest = (author: Author): Author =>
  author === "operator" ? author : { ...author, via: "change_request" };
