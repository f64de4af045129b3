import type { PlanLimits } from "@halyard/contracts";
import type { Sql, Transaction } from "@halyard/postgres";
import { environmentEntry } from "../environments/environment-entry.ts";
import { flagEntry } from "../flags/flag-entry.ts";
import { keyEntry } from "../keys/key-entry.ts";
import { organizationEntry } from "../organizations/organization-entry.ts";
import type { AddressedEntry } from "../outbox/addressed-entry.ts";
import { projectEntry } from "../projects/project-entry.ts";

export type FullState = {
  entries: readonly AddressedEntry[];
  /** Unsent rows of the outbox whose values, or newer ones, are among the entries. */
  supersededRows: readonly number[];
};

/** Everything that the snapshot holds, as it was at one moment. */
export async function readFullState(
  sql: Sql,
  plans: Readonly<Record<string, PlanLimits>>,
): Promise<FullState> {
  return sql.begin("isolation level repeatable read read only", async (plainTransaction) => {
    const tx = plainTransaction as unknown as Transaction;
    return {
      entries: [
        ...(await organizations(tx, plans)),
        ...(await projects(tx)),
        ...(await environments(tx)),
        ...(await keys(tx)),
        ...(await flags(tx)),
      ],
      supersededRows: (
        await tx<{ id: number }[]>`
          select id from outbox where stream = 'snapshot' and sent_at is null`
      ).map((row) => row.id),
    };
  }) as Promise<FullState>;
}

async function organizations(
  tx: Transaction,
  plans: Readonly<Record<string, PlanLimits>>,
): Promise<AddressedEntry[]> {
  const rows = await tx<Parameters<typeof organizationEntry>[0][]>`
    select organization.id, organization.name, organization.plan, organization.version,
           organization.updated_at as "updatedAt",
           (select count(*)::integer from projects as project
             where project.organization_id = organization.id) as "projectCount"
    from organizations as organization`;
  return rows.map((row) => organizationEntry(row, plans));
}

async function projects(tx: Transaction): Promise<AddressedEntry[]> {
  const rows = await tx<Parameters<typeof projectEntry>[0][]>`
    select id, organization_id as "organizationId", name, created_at as "createdAt"
    from projects`;
  return rows.map(projectEntry);
}

async function environments(tx: Transaction): Promise<AddressedEntry[]> {
  const rows = await tx<Parameters<typeof environmentEntry>[0][]>`
    select environment.id, environment.project_id as "projectId",
           project.organization_id as "organizationId",
           environment.name, environment.created_at as "createdAt"
    from environments as environment
    join projects as project on project.id = environment.project_id`;
  return rows.map(environmentEntry);
}

/** Keys that were revoked or have expired are left out: an unknown key and a dead one are alike. */
async function keys(tx: Transaction): Promise<AddressedEntry[]> {
  const rows = await tx<Parameters<typeof keyEntry>[0][]>`
    select key.id, key.secret_sha256 as "secretSha256", key.kind,
           project.organization_id as "organizationId", project.id as "projectId",
           key.environment_id as "environmentId", key.user_id as "userId",
           key.environment_only as "environmentOnly", key.version,
           key.expires_at as "expiresAt", key.created_at as "committedAt"
    from api_keys as key
    join environments as environment on environment.id = key.environment_id
    join projects as project on project.id = environment.project_id
    where key.revoked_at is null and (key.expires_at is null or key.expires_at > now())`;
  return rows.map(keyEntry);
}

async function flags(tx: Transaction): Promise<AddressedEntry[]> {
  const rows = await tx<(Parameters<typeof flagEntry>[0] & Parameters<typeof flagEntry>[1])[]>`
    select flag.id, project.organization_id as "organizationId", flag.project_id as "projectId",
           flag.key, state.environment_id as "environmentId", state.enabled,
           state.rollout_percentage as "rolloutPercentage",
           state.targeting_rules as "targetingRules", state.version, state.updated_at as "updatedAt"
    from flag_states as state
    join flags as flag on flag.id = state.flag_id
    join projects as project on project.id = flag.project_id`;
  return rows.map((row) => flagEntry(row, row));
}
