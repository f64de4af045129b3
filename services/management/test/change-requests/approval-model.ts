import { isDeepStrictEqual } from "node:util";

/**
 * A model of a protected environment that always uses the audience. It replays the audit log, whose entries are in the order of the commits, and says
 * what should not have happened. It knows what approvers have read, and uses nothing of the product.
 */
export type AuditedEntry = {
  action: string;
  cause: string;
  causeId: string | null;
  environmentId: string | null;
  flagId: string | null;
  before: Members | null;
  after: Members | null;
};
// biome-ignore lint/suspicious/noExplicitAny: the model reads members of every shape.
type Members = Record<string, any>;

/** A request as it is stored, when the log says that it was applied. */
export type AppliedRequest = {
  id: string;
  contentHash: string;
  changes: readonly Members[];
  approvals: readonly { user_id: string; content_hash: string }[];
};

/** What the test has sent and received. */
export type Witness = {
  /** The changes that were read with a hash. */
  read: ReadonlyMap<string, readonly Members[]>;
  /** The approvals that were answered with success, as `request user hash`. */
  approved: ReadonlySet<string>;
  contributors: ReadonlyMap<string, ReadonlySet<string>>;
  /** The users who certainly had no role while the entries were written. */
  without: ReadonlySet<string>;
};

export function createApprovalModel(environmentId: string) {
  let protection: Members | null = null;
  const contents = new Map<string, Members>();
  let standing = new Map(contents);
  const approved: [string, Members][] = [];
  const byCause = new Map<string, AuditedEntry[]>();
  const ended = new Set<string>();

  /** Replays an entry. Returns what is wrong with it. */
  function observe(entry: AuditedEntry, request: AppliedRequest | undefined, witness: Witness) {
    if (entry.action === "environment_changed") return observeProtection(entry);
    if (entry.action === "state") return observeState(entry);
    if (entry.action.startsWith("audience_"))
      return protection !== null && entry.causeId === null ? ["an audience changed by itself"] : [];
    if (!/^change_request_(applied|bypassed)$/.test(entry.action)) return [];
    if (request === undefined || ended.has(request.id)) return ["a request was applied twice"];
    ended.add(request.id);
    const isBypass = entry.action === "change_request_bypassed";
    return [
      ...wrongEntries(request),
      ...(isBypass || protection === null ? [] : missingApprovals(request, witness)),
      ...(isBypass ? [] : rememberApproved(request)),
    ];
  }

  function observeProtection({ causeId, after }: AuditedEntry): string[] {
    const before = protection;
    protection = after?.protected ?? null;
    if (before === null) standing = new Map(contents);
    const isLower = before !== null && (protection?.approvals ?? 0) < before.approvals;
    return isLower && causeId === null && !after?.bypass_reason ? ["a protection was lowered"] : [];
  }

  function observeState(entry: AuditedEntry): string[] {
    const { environmentId: at, flagId, causeId, before, after, cause } = entry;
    if (causeId !== null) byCause.set(causeId, [...(byCause.get(causeId) ?? []), entry]);
    if (at !== environmentId || flagId === null || before === null || after === null) return [];
    const current = contents.get(flagId);
    contents.set(flagId, after);
    if (current !== undefined && !isDeepStrictEqual(current, before))
      return ["a change began with another state"];
    if (protection === null || causeId !== null) return [];
    const exceptions: string[] = protection.without_approval;
    const isOff = isDeepStrictEqual({ ...before, enabled: false }, after);
    const isReturn = cause === "rollback" && mayReturn(flagId, before, after);
    const isPermitted =
      (exceptions.includes("off") && isOff) || (exceptions.includes("rollback") && isReturn);
    return isPermitted
      ? []
      : [`a state changed by itself: ${JSON.stringify({ entry, protection })}`];
  }

  const mayReturn = (flagId: string, before: Members, after: Members) =>
    (before.enabled || !after.enabled) &&
    [...approved, ...standing].some(
      ([id, content]) => id === flagId && isDeepStrictEqual(content, after),
    );

  /** Each state of the request has one entry, from the value before to the value after. */
  function wrongEntries({ id, changes }: AppliedRequest): string[] {
    const states = changes.filter(({ kind }) => kind === "state");
    const entries = byCause.get(id) ?? [];
    const isMade = states.every(({ flag_id, environment_id, before, after }) =>
      entries.some(
        (entry) =>
          entry.flagId === flag_id &&
          entry.environmentId === environment_id &&
          isDeepStrictEqual([entry.before, entry.after], [before, after]),
      ),
    );
    return isMade && entries.length === states.length ? [] : ["a request has other entries"];
  }

  function missingApprovals(request: AppliedRequest, witness: Witness): string[] {
    const { id, contentHash, changes, approvals } = request;
    if (!changes.some(affectsIt)) return [];
    const read = witness.read.get(contentHash);
    const contributors = witness.contributors.get(id);
    const counted = new Set(
      approvals.flatMap(({ user_id: user, content_hash: hash }) =>
        hash === contentHash &&
        witness.approved.has(`${id} ${user} ${hash}`) &&
        contributors?.has(user) === false &&
        !witness.without.has(user)
          ? user
          : [],
      ),
    );
    const isRead = isDeepStrictEqual(read?.map(valuesOf), changes.map(valuesOf));
    return [
      ...(counted.size < protection?.approvals
        ? [
            `a request had too few approvals: ${JSON.stringify({ request, protection, without: [...witness.without] })}`,
          ]
        : []),
      ...(isRead ? [] : ["a request was not applied as it was read"]),
    ];
  }

  /** A change that has its value already is not in the request, so that another environment can be left. */
  const affectsIt = ({ kind, environment_id }: Members) =>
    kind !== "state" || environment_id === environmentId;

  function rememberApproved({ changes }: AppliedRequest): string[] {
    if (protection === null) return [];
    for (const { kind, environment_id, flag_id, after } of changes)
      if (kind === "state" && environment_id === environmentId) approved.push([flag_id, after]);
    return [];
  }

  return { observe, flagIds: () => [...contents.keys()] };
}

const valuesOf = ({
  kind,
  flag_id,
  environment_id,
  before,
  after,
  protected: requested,
}: Members) => ({
  ...{ kind, flag_id, environment_id, after, requested },
  before: kind === "state" ? before : undefined,
});
