import type { GroupsEntry } from "@halyard/contracts";
import type { Sql, Transaction } from "@halyard/postgres";
import { personToPublish } from "../outbox/outbox-message.ts";
import { type PeopleChange, putPeopleEntries } from "../outbox/people-entries.ts";
import type { Write } from "../outbox/write.ts";
import { readGroupGrants } from "./grant-store.ts";
import { grantedRole } from "./grants.ts";

/** Publishes the roles of groups, which count only in organizations that the operator has named. */
export type GroupSettings = { groupsOrganizations: readonly string[] | "all" };

export function mapsGroups(
  { groupsOrganizations }: GroupSettings,
  organizationId: string,
): boolean {
  return groupsOrganizations === "all" || groupsOrganizations.includes(organizationId);
}

/** Publishes the entry of all groups of an organization. */
export async function publishGroups(
  { tx, publish }: Pick<Write, "tx" | "publish">,
  organizationId: string,
  settings: GroupSettings,
): Promise<void> {
  publish([personToPublish(await readGroupsEntry(tx, organizationId, settings))]);
}

/** Returns the entry of all groups of an organization. Elsewhere than in a named one, it is empty. */
async function readGroupsEntry(
  tx: Transaction,
  organizationId: string,
  settings: GroupSettings,
): Promise<PeopleChange> {
  const rows = mapsGroups(settings, organizationId)
    ? await readGroupGrants(tx, organizationId)
    : [];
  const grants: GroupsEntry["grants"] = rows.map(({ group, ...grant }) => ({
    group,
    ...grantedRole(grant),
  }));
  return {
    address: { kind: "groups", organizationId },
    content: { kind: "groups", organization_id: organizationId, grants },
  };
}

/**
 * Writes the entries that other settings have left, at the begin of a leader's term. A grant is given and withdrawn under
 * the same lock, so that neither overwrites the other's entry.
 */
export async function applyGroupSettings({
  sql,
  lease,
  ...settings
}: {
  sql: Sql;
  lease: { recordAsLeader(work: (tx: Transaction) => Promise<void>): Promise<void> };
} & GroupSettings): Promise<void> {
  const known = await sql<{ organizationId: string; isEmpty: boolean }[]>`
    select organization.id as "organizationId",
      coalesce(jsonb_array_length(entry.content::jsonb -> 'grants'), 0) = 0 as "isEmpty"
    from organizations as organization
    left join people_entries as entry on entry.key = 'groups.' || organization.id
    where exists (
      select from grants
      where grants.organization_id = organization.id and grants.group_name is not null
    )`;
  const outdated = known.filter(
    ({ organizationId, isEmpty }) => mapsGroups(settings, organizationId) === isEmpty,
  );
  for (const { organizationId } of outdated)
    await lease.recordAsLeader(async (tx) => {
      await tx`select from organizations where id = ${organizationId} for no key update`;
      await putPeopleEntries(tx, [await readGroupsEntry(tx, organizationId, settings)]);
    });
}
