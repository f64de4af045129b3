import { includes, roleAt } from "@halyard/people";
import type { Sql, Transaction } from "@halyard/postgres";
import { readHeldGrants } from "../people/grant-store.ts";
import { grantedRole } from "../people/grants.ts";
import { type Place, readDifferences } from "./base.ts";
import type { ChangeRequest, GivenApproval, NeededApproval, Standing } from "./change-request.ts";
import type { OpenRequest } from "./request-store.ts";

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

export type WithStanding = { request: ChangeRequest; standing: Standing };

/** Reads the current approvals and differences of requests of a project. */
export async function withStandings(
  sql: Sql | Transaction,
  requests: readonly ChangeRequest[],
  place: Place,
): Promise<WithStanding[]> {
  const pending = requests.filter(isPending);
  const [found, counted] = await Promise.all([
    readDifferences(sql, place, pending),
    Promise.all(pending.map((request) => readCountedApprovals(sql, request))),
  ]);
  return requests.map((request) => {
    const index = pending.indexOf(request);
    if (index === -1) return { request, standing: noStanding };
    const needed = neededApprovals(request, place, counted[index] ?? []);
    return { request, standing: { needed, differences: found[index] ?? [] } };
  });
}

const isPending = ({ status }: ChangeRequest): boolean =>
  ["draft", "open", "approved", "stale"].includes(status);

/** The standing of a request that has ended. */
export const noStanding: Standing = { needed: [], differences: [] };

export async function readStanding(
  sql: Sql | Transaction,
  request: ChangeRequest,
  place: Place,
): Promise<Standing> {
  const [found] = await withStandings(sql, [request], place);
  return found?.standing ?? noStanding;
}

/** Returns the ids of the open and approved requests of a project whose base differs from the current values. */
export async function findStale(
  sql: Sql | Transaction,
  place: Place,
  requests: readonly OpenRequest[],
): Promise<string[]> {
  const differences = await readDifferences(sql, place, requests);
  return requests.flatMap(({ id }, index) => (differences[index]?.length === 0 ? [] : id));
}
