import type { PlanLimits } from "@halyard/contracts";
import type { PendingQuery, Sql, Transaction } from "@halyard/postgres";
import { environmentEntry } from "../environments/environment-entry.ts";
import { flagEntry } from "../flags/flag-entry.ts";
import { keyEntry } from "../keys/key-entry.ts";
import { workingKeys } from "../keys/key-store.ts";
import { organizationEntry } from "../organizations/organization-entry.ts";
import type { AddressedEntry } from "../outbox/addressed-entry.ts";
import { projectEntry } from "../projects/project-entry.ts";

/** Entries are handed over in parts of this many rows, so that the whole never stands in memory. */
const rowsAtOnce = 1_000;

/**
 * Hands over everything that the snapshot holds, as it was at one moment, part by part. Answers the
 * unsent rows of the outbox whose values, or newer ones, were among it.
 */
export async function readFullState(
  sql: Sql,
  plans: Readonly<Record<string, PlanLimits>>,
  onEntries: (entries: readonly AddressedEntry[]) => Promise<void>,
): Promise<readonly number[]> {
  return sql.begin("isolation level repeatable read read only", async (plainTransaction) => {
    const tx = plainTransaction as unknown as Transaction;
    // The first statement fixes the moment.
    const unsent = await tx<{ id: number }[]>`
      select id from outbox where stream = 'snapshot' and sent_at is null`;
    await handOver(organizations(tx), (row) => organizationEntry(row, plans), onEntries);
    await handOver(projects(tx), projectEntry, onEntries);
    await handOver(environments(tx), environmentEntry, onEntries);
    await handOver(
      workingKeys(tx),
      (key) => keyEntry({ ...key, committedAt: key.createdAt }),
      onEntries,
    );
    await handOver(flags(tx), (row) => flagEntry(row, row), onEntries);
    return unsent.map((row) => row.id);
  }) as Promise<readonly number[]>;
}

async function handOver<Row extends object>(
  query: PendingQuery<Row[]>,
  entryOf: (row: Row) => AddressedEntry,
  onEntries: (entries: readonly AddressedEntry[]) => Promise<void>,
): Promise<void> {
  for await (const rows of query.cursor(rowsAtOnce)) await onEntries(rows.map(entryOf));
}

type OrganizationRow = Parameters<typeof organizationEntry>[0];
type ProjectRow = Parameters<typeof projectEntry>[0];
type EnvironmentRow = Parameters<typeof environmentEntry>[0];
type FlagRow = Parameters<typeof flagEntry>[0] & Parameters<typeof flagEntry>[1];

const organizations = (tx: Transaction) => tx<OrganizationRow[]>`
    select organization.id, organization.name, organization.plan, organization.limits,
           organization.version,
           organization.updated_at as "updatedAt",
           (select count(*)::integer from projects as project
             where project.organization_id = organization.id) as "projectCount"
    from organizations as organization`;

const projects = (tx: Transaction) => tx<ProjectRow[]>`
    select id, organization_id as "organizationId", name, created_at as "createdAt"
    from projects`;

const environments = (tx: Transaction) => tx<EnvironmentRow[]>`
    select environment.id, environment.project_id as "projectId",
           project.organization_id as "organizationId",
           environment.name, environment.created_at as "createdAt"
    from environments as environment
    join projects as project on project.id = environment.project_id`;

const flags = (tx: Transaction) => tx<FlagRow[]>`
    select flag.id, project.organization_id as "organizationId", flag.project_id as "projectId",
           flag.key, state.environment_id as "environmentId", state.enabled,
           state.rollout_percentage as "rolloutPercentage",
           state.targeting_rules as "targetingRules", state.version, state.updated_at as "updatedAt"
    from flag_states as state
    join flags as flag on flag.id = state.flag_id
    join projects as project on project.id = flag.project_id`;
