import { includes, roleAt } from "@halyard/people";
import type { Sql, Transaction } from "@halyard/postgres";
import { readHeldGrants } from "../people/grant-store.ts";
import { grantedRole } from "../people/grants.ts";
import { type Place, readBase } from "./base.ts";
import {
  type ChangeRequest,
  differencesOf,
  type GivenApproval,
  type NeededApproval,
  type Standing,
} from "./change-request.ts";

/** The approvals of a request that count, and its differences from the current values. */

/** Returns the approvals of the current content whose approvers still have the role, with the environments where they do. */
export async function readCountedApprovals(
  sql: Sql | Transaction,
  { projectId, organizationId, approvals, contentHash }: ChangeRequest,
): Promise<GivenApproval[]> {
  const ofContent = approvals.filter(({ content_hash }) => content_hash === contentHash);
  return Promise.all(
    ofContent.map(async (approval) => {
      const { user_id: userId, groups, environment_ids } = approval;
      const grants = (await readHeldGrants(sql, organizationId, { userId, groups })).map(
        grantedRole,
      );
      const held = environment_ids.filter((environmentId) =>
        includes(roleAt(grants, { projectId, environmentId }), "approver"),
      );
      return { ...approval, environment_ids: held };
    }),
  );
}

/** Returns the protected environments that a request affects, with the approvals that each needs and has. */
export function neededApprovals(
  { environmentIds, contributors }: Pick<ChangeRequest, "environmentIds" | "contributors">,
  { environments }: Place,
  counted: readonly GivenApproval[],
): NeededApproval[] {
  return environments.flatMap((environment) => {
    const { id, protection } = environment;
    if (protection === null || !environmentIds.includes(id)) return [];
    const approvers = counted.filter(
      ({ user_id, environment_ids }) =>
        environment_ids.includes(id) &&
        (protection.self_approval || !contributors.includes(user_id)),
    );
    const given = new Set(approvers.map(({ user_id }) => user_id)).size;
    return [{ environment, approvals: protection.approvals, given }];
  });
}

export const isApproved = (needed: readonly NeededApproval[]): boolean =>
  needed.every(({ approvals: count, given }) => given >= count);

/** Reads the current approvals and differences of a request. One that has ended has none. */
export async function readStanding(
  sql: Sql | Transaction,
  request: ChangeRequest,
  place: Place,
): Promise<Standing> {
  const isOpen = ["draft", "open", "approved", "stale"].includes(request.status);
  const [base, counted] = await Promise.all([
    isOpen ? readBase(sql, place, request.changes) : request.base,
    readCountedApprovals(sql, request),
  ]);
  const differences = differencesOf(request.base, base);
  return { needed: isOpen ? neededApprovals(request, place, counted) : [], differences };
}
