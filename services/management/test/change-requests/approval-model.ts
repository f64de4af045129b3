import { isDeepStrictEqual } from "node:util";

/**
 * A model of a protected environment that always uses the audience. It replays the audit log, whose entries are in the
 * order of the commits, and says what should not have happened. It knows what approvers have read, and uses nothing of the
 * product.
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
  let match: unknown;
  const contents = new Map<string, Members>();
  let standing = new Map(contents);
  const approved: [string, Members][] = [];
  const byCause = new Map<string, AuditedEntry[]>();
  /** The protection before a request changed it, by the request. Its approvals are those that the request needed. */
  const guards = new Map<string, Members | null>();
  const ended = new Set<string>();

  /** Replays an entry. Returns what is wrong with it. */
  function observe(entry: AuditedEntry, request: AppliedRequest | undefined, witness: Witness) {
    const { action, causeId } = entry;
    if (causeId !== null && !action.startsWith("change_request_"))
      byCause.set(causeId, [...(byCause.get(causeId) ?? []), entry]);
    if (action === "environment_changed") return observeProtection(entry);
    if (action === "state") return observeState(entry);
    if (action.startsWith("audience_")) return observeAudience(entry);
    if (!/^change_request_(applied|bypassed)$/.test(action)) return [];
    if (request === undefined || ended.has(request.id)) return ["a request was applied twice"];
    ended.add(request.id);
    const isBypass = action === "change_request_bypassed";
    return [
      ...wrongEntries(request),
      ...(isBypass ? [] : missingApprovals(request, witness)),
      ...(isBypass ? [] : rememberApproved(request)),
    ];
  }

  function observeProtection({ causeId, after }: AuditedEntry): string[] {
    const before = protection;
    protection = after?.protected ?? null;
    if (before === null) standing = new Map(contents);
    if (causeId !== null) guards.set(causeId, before);
    const isPermitted = causeId !== null || Boolean(after?.bypass_reason);
    return isLower(before, protection) && !isPermitted ? ["a protection was lowered"] : [];
  }

  function observeAudience({ causeId, before, after }: AuditedEntry): string[] {
    const isOther = match !== undefined && !isDeepStrictEqual(match, before?.match);
    match = after?.match;
    return [
      ...(isOther ? ["a change of an audience began with other conditions"] : []),
      ...(protection !== null && causeId === null ? ["an audience changed by itself"] : []),
    ];
  }

  function observeState(entry: AuditedEntry): string[] {
    const { environmentId: at, flagId, causeId, before, after, cause } = entry;
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

  /** Each change of the request has one entry, from the value before to the value after. */
  function wrongEntries({ id, changes }: AppliedRequest): string[] {
    const entries = (byCause.get(id) ?? []).map(valuesOfEntry);
    const isMade = changes.every((change) => {
      const expected = expectedEntry(change);
      return entries.some((entry) => isDeepStrictEqual(entry, expected));
    });
    return isMade && entries.length === changes.length ? [] : ["a request has other entries"];
  }

  function missingApprovals(request: AppliedRequest, witness: Witness): string[] {
    const { id, contentHash, changes, approvals } = request;
    const guard = guards.has(id) ? guards.get(id) : protection;
    if (!guard || !changes.some(affectsIt)) return [];
    const read = witness.read.get(contentHash);
    const contributors = witness.contributors.get(id);
    const counted = new Set(
      approvals.flatMap(({ user_id: user, content_hash: hash }) =>
        hash === contentHash &&
        witness.approved.has(`${id} ${user} ${hash}`) &&
        (guard.self_approval || contributors?.has(user) === false) &&
        !witness.without.has(user)
          ? user
          : [],
      ),
    );
    const isRead = isDeepStrictEqual(read?.map(valuesOf), changes.map(valuesOf));
    return [
      ...(counted.size < guard.approvals
        ? [
            `a request had too few approvals: ${JSON.stringify({ request, guard, without: [...witness.without] })}`,
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

/** Returns whether a protection permits anything that another one did not. */
const isLower = (before: Members | null, after: Members | null): boolean =>
  before !== null &&
  (after === null ||
    after.approvals < before.approvals ||
    (after.self_approval && !before.self_approval) ||
    after.without_approval.some((each: string) => !before.without_approval.includes(each)));

/** The part of an entry that a change of a request decides. */
function valuesOfEntry({ action, flagId, environmentId, before, after }: AuditedEntry) {
  switch (action) {
    case "state":
      return [action, flagId, environmentId, before, after];
    case "environment_changed":
      return [action, environmentId, before?.protected ?? null, after?.protected ?? null];
    default:
      return [action, before?.match, after?.match];
  }
}

function expectedEntry(change: Members) {
  switch (change.kind) {
    case "state":
      return ["state", change.flag_id, change.environment_id, change.before, change.after];
    case "protection":
      return ["environment_changed", change.environment_id, change.before, change.protected];
    default:
      return ["audience_changed", change.before.match, change.patch.match];
  }
}

const valuesOf = (change: Members) => {
  const { kind, flag_id, environment_id, audience, before, after, patch } = change;
  return {
    ...{ kind, flag_id, environment_id, audience, before, after, requested: change.protected },
    patch: kind === "audience" ? patch : undefined,
  };
};
