import { createHash } from "node:crypto";
import type { CreateChangeRequest, UpdateChangeRequest } from "@halyard/contracts";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import { type Caller, includes, missingRole } from "@halyard/people";
import type { Transaction } from "@halyard/postgres";
import type { KeyPrincipal } from "../access/principal.ts";
import type { Change } from "../access/routes.ts";
import type { Proposal } from "../protection/proposal.ts";
import type { ApprovalNeeded } from "../protection/protection.ts";
import { baseIdOf, type Place, readBase, readPlace } from "./base.ts";
import { canonicalJson } from "./canonical-json.ts";
import {
  type Base,
  type ChangeRequest,
  contentHashOf,
  type DecidedChange,
  nextStep,
} from "./change-request.ts";
import { describeChanges, shorten } from "./describe-changes.ts";
import { checkUnprotected } from "./may-apply.ts";
import { record } from "./record-request.ts";
import {
  countPending,
  findByWrite,
  insertRequest,
  lockRequest,
  removeOldestDrafts,
  updateRequest,
} from "./request-store.ts";
import { isApproved, readStanding, type WithStanding } from "./standing.ts";
import { affectedEnvironments, decideChanges } from "./values-of-changes.ts";

/**
 * The use cases of change requests, up to their application. Each runs in the transaction of a write, which locks the
 * request first.
 */
export type RequestWrite = Change<KeyPrincipal>;
export type RequestAndStanding = WithStanding & { place: Place };

/** A request with proposals in place of its changes. */
type WithProposals<Body> = Omit<Body, "changes"> & { proposals: readonly Proposal[] };

/** Opens a request. */
export async function openNew(
  change: RequestWrite,
  body: WithProposals<CreateChangeRequest>,
): Promise<RequestAndStanding | Problem> {
  const { tx, newId } = change;
  const { key } = change.principal;
  const place = await readPlace(tx, key.projectId);
  const refused = checkMayPropose(key, body.proposals);
  if (refused !== undefined) return refused;
  const decided = await decideContent(change, place, body.proposals);
  if (isProblem(decided)) return decided;
  const request = await newRequest(change, {
    ...{ title: body.title, reason: body.reason ?? "", status: "open" },
    ...{ ...decided, applyAt: body.apply_at === undefined ? null : new Date(body.apply_at) },
    ...{ id: newId(), draftSha256: null },
  });
  const wrongTime = checkTimed(change, request, place);
  if (wrongTime !== undefined) return wrongTime;
  const full = await checkRoom(tx, request);
  if (full !== undefined) return full;
  const opened = await settle(change, request, place);
  await insertRequest(tx, opened.request);
  await record(change, "change_request_opened", opened.request, null);
  return opened;
}

/** Maximum number of requests of a project that have not ended, each with up to 4 MiB of changes. */
const maxPending = 200;

/** Maximum number of them by one author, so that a program does not use up those of the project. */
const maxPendingOfAuthor = 50;

async function checkRoom(
  tx: Transaction,
  author: Pick<ChangeRequest, "projectId" | "createdBy">,
): Promise<Problem | undefined> {
  const { ofProject, ofAuthor } = await countPending(tx, author);
  if (ofAuthor >= maxPendingOfAuthor) return tooManyPending("You have", maxPendingOfAuthor);
  return ofProject >= maxPending ? tooManyPending("The project has", maxPending) : undefined;
}

const tooManyPending = (has: string, maximum: number): Problem =>
  createProblem(
    "CONFLICT_001",
    `${has} ${maximum} pending change requests, which is the maximum. Apply, reject or withdraw some.`,
  );

/** Maximum number of drafts that refused writes of one author leave. */
const maxDrafts = 20;

/**
 * Makes a request of a refused write: a draft, or an open one. The same write of the same author makes one, which a
 * program can repeat without end.
 */
export async function draftOfWrite(
  change: RequestWrite,
  { proposals }: ApprovalNeeded,
  { isOpened }: { isOpened: boolean },
): Promise<RequestAndStanding | Problem> {
  const { tx, newId, principal } = change;
  const { projectId, userId: createdBy } = principal.key;
  const draftSha256 = digestOf(proposals);
  const place = await readPlace(tx, projectId);
  const made = await findByWrite(tx, { projectId, createdBy, draftSha256 });
  if (made !== undefined && (made.status !== "draft" || !isOpened)) {
    const standing = await readStanding(tx, made, place);
    const isCurrent = made.status !== "stale" && standing.differences.length === 0;
    if (isCurrent) return { request: made, standing, place };
    // Otherwise a program that repeats its write would get a stale request each time.
    if (made.status !== "draft") return rebaseRequest(change, made.id);
  }
  const decided = await decideContent(change, place, proposals);
  if (isProblem(decided)) return decided;
  const [title = ""] = describeChanges(decided.changes).split("\n");
  const status = isOpened ? "open" : "draft";
  const fresh = await newRequest(change, {
    ...{ title: shorten(title, 200), reason: "", status, ...decided },
    ...{ applyAt: null, id: made?.id ?? newId(), draftSha256 },
  });
  const request = isOpened
    ? await settle(change, fresh, place)
    : await withStanding(tx, fresh, place);
  const full = isOpened ? await checkRoom(tx, fresh) : undefined;
  if (full !== undefined) return full;
  if (made !== undefined) await updateRequest(tx, request.request);
  else if (!(await insertRequest(tx, request.request))) return concurrentWrite;
  if (isOpened) await record(change, "change_request_opened", request.request, null);
  else await removeOldestDrafts(tx, request.request, maxDrafts);
  return request;
}

const concurrentWrite = createProblem(
  "CONFLICT_001",
  "Another request makes the same change request at this moment. Repeat the request.",
);

/** Identifies proposals, without the ids of new rules and the version of the value, which differ each time. */
function digestOf(proposals: readonly Proposal[]): string {
  const stable = proposals.map(({ base_version: _, ...proposal }) =>
    proposal.kind !== "state"
      ? proposal
      : {
          ...proposal,
          patch: {
            ...proposal.patch,
            targeting_rules: proposal.patch.targeting_rules?.map(({ id: __, ...rule }) => rule),
          },
        },
  );
  return createHash("sha256").update(canonicalJson(stable)).digest("hex");
}

/** Edits a request. Another content removes the approvals. */
export async function editRequest(
  change: RequestWrite,
  id: string,
  { title, reason, apply_at, proposals }: WithProposals<UpdateChangeRequest> | EditWithoutChanges,
): Promise<RequestAndStanding | Problem> {
  const { tx, now, principal } = change;
  const found = await lockPending(change, id);
  if (isProblem(found)) return found;
  const { request, place } = found;
  const refused = checkMayPropose(principal.key, proposals ?? proposalsOf(request.changes));
  if (refused !== undefined) return refused;
  const decided = proposals === undefined ? request : await decideContent(change, place, proposals);
  if (isProblem(decided)) return decided;
  const applyAt =
    apply_at === undefined ? request.applyAt : apply_at === null ? null : new Date(apply_at);
  const { changes, base, environmentIds } = decided;
  const edited: ChangeRequest = {
    ...{ ...request, changes, base, environmentIds, applyAt },
    ...{ title: title ?? request.title, reason: reason ?? request.reason },
    ...{ ...nextStep(request, now()), draftSha256: null },
    contributors: [...new Set([...request.contributors, ...(await contributorsOf(change))])],
  };
  const wrongTime = checkTimed(change, edited, place);
  if (wrongTime !== undefined) return wrongTime;
  const settled = await settle(change, withHash(edited), place);
  await updateRequest(tx, settled.request);
  await record(change, "change_request_edited", settled.request, request);
  return settled;
}

type EditWithoutChanges = Omit<UpdateChangeRequest, "changes"> & { proposals?: undefined };

/** Opens a draft. An open request stays as it is. */
export async function openDraft(
  change: RequestWrite,
  id: string,
): Promise<RequestAndStanding | Problem> {
  const found = await lockPending(change, id);
  if (isProblem(found) || found.request.status !== "draft") return found;
  const { request, place } = found;
  const { key } = change.principal;
  const refused =
    checkMayPropose(key, proposalsOf(request.changes)) ?? checkTimed(change, request, place);
  if (refused !== undefined) return refused;
  const full = await checkRoom(change.tx, request);
  if (full !== undefined) return full;
  const opened: ChangeRequest = { ...request, status: "open", ...nextStep(request, change.now()) };
  const settled = await settle(change, opened, place);
  await updateRequest(change.tx, settled.request);
  await record(change, "change_request_opened", settled.request, request);
  return settled;
}

/** Decides the values again, on the current ones. The approvals are removed. */
export async function rebaseRequest(
  change: RequestWrite,
  id: string,
): Promise<RequestAndStanding | Problem> {
  const found = await lockPending(change, id);
  if (isProblem(found)) return found;
  const { request, place } = found;
  const proposals = proposalsOf(request.changes);
  const refused = checkMayPropose(change.principal.key, proposals);
  if (refused !== undefined) return refused;
  const decided = await decideContent(change, place, proposals);
  if (isProblem(decided)) return decided;
  const rebased: ChangeRequest = {
    ...{ ...request, ...decided, status: "open", approvals: [] },
    ...nextStep(request, change.now()),
    contributors: [...new Set([...request.contributors, ...(await contributorsOf(change))])],
  };
  const unpermitted = checkTimed(change, rebased, place);
  if (unpermitted !== undefined) return unpermitted;
  const settled = await settle(change, withHash(rebased), place);
  await updateRequest(change.tx, settled.request);
  await record(change, "change_request_rebased", settled.request, request);
  return settled;
}

/** Returns the changes as proposals on the current values. */
const proposalsOf = (changes: readonly DecidedChange[]): Proposal[] =>
  changes.map(({ base_version: _, ...change }) => change);

type Content = { changes: readonly DecidedChange[]; base: Base; environmentIds: readonly string[] };

async function decideContent(
  { tx, newId }: RequestWrite,
  place: Place,
  proposals: readonly Proposal[],
): Promise<Content | Problem> {
  const changes = await decideChanges(tx, { ...place, newId }, proposals);
  if (isProblem(changes)) return changes;
  const [base, environmentIds] = await Promise.all([
    readBase(tx, place, changes),
    affectedEnvironments(tx, place, changes),
  ]);
  return isOfBase(changes, base) ? { changes, base, environmentIds } : changedMeanwhile;
}

/** Returns whether the values were read in the versions of the base, which other statements have read. */
const isOfBase = (changes: readonly DecidedChange[], base: Base): boolean =>
  changes.every((change) => base[baseIdOf(change)]?.version === String(change.base_version));

const changedMeanwhile = createProblem(
  "CONFLICT_001",
  "The values have changed while the request was read. Repeat the request.",
);

async function newRequest(
  change: RequestWrite,
  given: Content &
    Pick<ChangeRequest, "id" | "title" | "reason" | "status" | "applyAt" | "draftSha256">,
): Promise<ChangeRequest> {
  const { projectId, organizationId, userId } = change.principal.key;
  const now = change.now();
  return withHash({
    ...{ projectId, organizationId, ...given, contentHash: "", approvals: [] },
    ...{ createdBy: userId, createdAt: now, version: 1, updatedAt: now },
    contributors: await contributorsOf(change),
    ...{ appliedAt: null, causeId: null, appliedEntries: [] },
    ...{ closedBy: null, comment: null, bypassReason: null },
  });
}

const withHash = (request: ChangeRequest): ChangeRequest => ({
  ...request,
  contentHash: contentHashOf(request),
});

/** Returns the users who contribute by a request: its user, and everybody who issued the key, also through other keys. */
async function contributorsOf({ tx, principal }: RequestWrite): Promise<string[]> {
  const { id, userId, via } = principal.key;
  if (via !== "key") return [userId];
  const [key] = await tx<{ issuers: string[] }[]>`select issuers from api_keys where id = ${id}`;
  return [...new Set([userId, ...(key?.issuers ?? [])])];
}

/**
 * Returns a request with the status that its approvals give it. While something differs from its base, it does not become
 * approved, and a stale one stays stale.
 */
export async function settle(
  { tx }: Pick<RequestWrite, "tx">,
  request: ChangeRequest,
  place: Place,
): Promise<RequestAndStanding> {
  const settled = await withStanding(tx, request, place);
  const { needed, differences } = settled.standing;
  const isSame = differences.length === 0;
  if (request.status === "draft" || (request.status === "stale" && !isSame)) return settled;
  const status = isSame && isApproved(needed) ? "approved" : "open";
  return { ...settled, request: { ...request, status } };
}

async function withStanding(
  tx: Transaction,
  request: ChangeRequest,
  place: Place,
): Promise<RequestAndStanding> {
  return { request, standing: await readStanding(tx, request, place), place };
}

/** Locks a request that has not ended. */
export async function lockPending(
  { tx, principal }: RequestWrite,
  id: string,
): Promise<RequestAndStanding | Problem> {
  const { key } = principal;
  const request = await lockRequest(tx, { id, projectId: key.projectId });
  if (request === undefined || !mayView(key, request)) return noSuchRequest;
  if (["applied", "rejected", "withdrawn"].includes(request.status)) return hasEnded(request);
  const place = await readPlace(tx, request.projectId);
  return { request, place, standing: await readStanding(tx, request, place) };
}

/** A key of one environment sees the requests that affect this one and no other. */
export const mayView = (
  { environmentOnly, environmentId }: Caller,
  { environmentIds }: Pick<ChangeRequest, "environmentIds">,
): boolean =>
  !environmentOnly || (environmentIds.length === 1 && environmentIds[0] === environmentId);

/**
 * Checks whether a caller may propose changes: as an editor somewhere in the project, or by a key with the scope for it. A
 * key of one environment proposes changes of states there.
 */
function checkMayPropose(key: Caller, proposals: readonly Proposal[]): Problem | undefined {
  const { rights, projectId, scope, via, environmentOnly, environmentId } = key;
  const held = rights.within(projectId);
  const mayPropose = (via === "key" && scope === "propose") || includes(held, "editor");
  if (!mayPropose) return missingRole({ role: "editor", at: "any_environment" }, held);
  const isElsewhere = ({ kind, ...proposal }: Proposal) =>
    kind !== "state" ||
    !("environment_id" in proposal) ||
    proposal.environment_id.toLowerCase() !== environmentId;
  return environmentOnly && proposals.some(isElsewhere) ? notElsewhere : undefined;
}

const notElsewhere = createProblem(
  "AUTH_002",
  "A key with environment_only can only propose changes of states in its own environment.",
);

export function checkTime({ applyAt }: ChangeRequest, now: Date): Problem | undefined {
  if (applyAt === null || applyAt > now) return undefined;
  return createProblem(
    "VALIDATION_001",
    "/apply_at must be in the future. Edit the change request",
  );
}

/**
 * Checks the time of a request, and the rights for it. Nobody is asked again at that time, as for a schedule. A missed time
 * must be edited, because a request that becomes approved later would be applied immediately.
 */
function checkTimed(
  { principal, now }: RequestWrite,
  request: ChangeRequest,
  place: Place,
): Problem | undefined {
  if (request.applyAt === null) return undefined;
  return checkTime(request, now()) ?? checkUnprotected(request, principal.key, place);
}

export const noSuchRequest = createProblem(
  "NOT_FOUND_001",
  "There is no such change request in this project.",
);

export const hasEnded = ({ status }: Pick<ChangeRequest, "status">): Problem =>
  createProblem("CONFLICT_001", `The change request was ${status}. Open another one.`);
