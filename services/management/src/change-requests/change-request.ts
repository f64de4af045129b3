import { createHash } from "node:crypto";
import type {
  ChangeRequestStatus,
  ListedChangeRequest,
  Match,
  Protection,
  StoredVariations,
} from "@halyard/contracts";
import { momentAfter } from "../flags/decide-flag.ts";
import type { Content, FlagEnvironment } from "../flags/flag.ts";
import type { AudiencePatch, Proposal } from "../protection/proposal.ts";
import { canonicalJson } from "./canonical-json.ts";
import { describeChanges } from "./describe-changes.ts";

/** A change of a request with the values before and after it, as stored. Its members are those of the API. */
export type DecidedChange =
  | (OfState & { kind: "state"; before: Content; after: Content; dependents: number })
  | (OfFlag & { kind: "flag_variations"; variations: StoredVariations; before: StoredVariations })
  | (OfFlag & { kind: "flag_deletion" })
  | (OfAudience & { kind: "audience"; patch: AudiencePatch; before: AudienceBefore })
  | (OfAudience & { kind: "audience_list"; add: readonly string[]; remove: readonly string[] })
  | (OfEnvironment & {
      kind: "protection";
      base_version: number;
      protected: Protection | null;
      before: Protection | null;
    });

export type StateChange = Extract<DecidedChange, { kind: "state" }>;
type OfFlag = { flag_id: string; flag_key: string; base_version: number };
type OfEnvironment = { environment_id: string; environment_name: string };
type OfState = OfFlag & OfEnvironment & { patch: Extract<Proposal, { kind: "state" }>["patch"] };
type OfAudience = { audience: string; base_version: number };
type AudienceBefore = { match: Match; list: { attribute: string; count: number } | null };

/**
 * What changes refer to, directly or through other flags: states, variations, audiences, uses of audiences and
 * protections, by an id, each with its version. If one of them differs, the request is stale.
 */
export type Base = Readonly<Record<string, { label: string; version: string }>>;

export type GivenApproval = {
  user_id: string;
  /** The values of the claim of groups at the sign-in of the approver. A role can be that of a group. */
  groups: readonly string[];
  environment_ids: readonly string[];
  at: string;
  content_hash: string;
};

export type ChangeRequest = {
  id: string;
  projectId: string;
  organizationId: string;
  title: string;
  reason: string;
  status: ChangeRequestStatus;
  changes: readonly DecidedChange[];
  base: Base;
  contentHash: string;
  /** The environments whose answers the changes affect. */
  environmentIds: readonly string[];
  approvals: readonly GivenApproval[];
  applyAt: Date | null;
  createdBy: string;
  createdAt: Date;
  /** Counter of the steps, and the time of the last one. */
  version: number;
  updatedAt: Date;
  contributors: readonly string[];
  /** Identifies the refused write that made the request; null for any other, and after an edit. */
  draftSha256: string | null;
  appliedAt: Date | null;
  causeId: string | null;
  appliedEntries: readonly string[];
  closedBy: string | null;
  comment: string | null;
  bypassReason: string | null;
};

/** Returns the version and the time of the next step. Events of a request have distinct times, in their order. */
export const nextStep = (
  { version, updatedAt }: Pick<ChangeRequest, "version" | "updatedAt">,
  now: Date,
) => ({ version: version + 1, updatedAt: momentAfter(updatedAt, now) });

/** Returns the hash of everything that an approval covers. */
export function contentHashOf({
  id,
  changes,
  base,
  applyAt,
}: Pick<ChangeRequest, "id" | "changes" | "base" | "applyAt">): string {
  const versions = Object.fromEntries(
    Object.entries(base).map(([name, { version }]) => [name, version]),
  );
  const covered = { id, changes, base: versions, apply_at: applyAt?.toISOString() ?? null };
  return createHash("sha256").update(canonicalJson(covered)).digest("hex");
}

/** Returns what differs between two bases, in words. */
export function differencesOf(before: Base, now: Base): string[] {
  const ids = new Set([...Object.keys(before), ...Object.keys(now)]);
  const differing = [...ids].filter((id) => before[id]?.version !== now[id]?.version);
  return [...new Set(differing.map((id) => before[id]?.label ?? now[id]?.label ?? id))].sort();
}

/** The number of approvals that a protected environment needs and has. */
export type NeededApproval = { environment: FlagEnvironment; approvals: number; given: number };

/** The current approvals and differences of a request, which are not stored. */
export type Standing = { needed: readonly NeededApproval[]; differences: readonly string[] };

/** Returns whether a request is under review or approved. */
export const isOpen = ({ status }: Pick<ChangeRequest, "status">) =>
  status === "open" || status === "approved";

/** Returns the status with what has changed since the request was made. A draft is not reviewed, and does not become stale. */
const statusOf = (
  request: Pick<ChangeRequest, "status">,
  { differences }: Pick<Standing, "differences">,
): ChangeRequestStatus => (isOpen(request) && differences.length > 0 ? "stale" : request.status);

/** Returns a request as lists contain it. */
export function listedRequestResource(
  request: ChangeRequest,
  standing: Standing,
): ListedChangeRequest {
  return {
    id: request.id,
    title: request.title,
    reason: request.reason,
    status: statusOf(request, standing),
    content_hash: request.contentHash,
    approvals: request.approvals.map(({ groups: _, environment_ids, ...approval }) => ({
      ...approval,
      environment_ids: [...environment_ids],
    })),
    needed: standing.needed.map(({ environment, approvals, given }) => ({
      ...{ environment_id: environment.id, environment_name: environment.name },
      ...{ approvals, given },
    })),
    apply_at: request.applyAt?.toISOString() ?? null,
    created_by: request.createdBy,
    created_at: request.createdAt.toISOString(),
    updated_at: request.updatedAt.toISOString(),
    applied_at: request.appliedAt?.toISOString() ?? null,
    cause_id: request.causeId,
    closed_by: request.closedBy,
    comment: request.comment,
    bypass_reason: request.bypassReason,
    change_count: request.changes.length,
    summary: describeChanges(request.changes),
  };
}

export const pathOf = ({ id }: Pick<ChangeRequest, "id">): string =>
  `/api/v1/change-requests/${id}`;
