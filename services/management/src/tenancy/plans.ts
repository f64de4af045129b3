import { isDeepStrictEqual } from "node:util";
import { ConfigurationError } from "@halyard/configuration";
import {
  type ConfiguredLimits,
  type EntryOf,
  type Plan as PlanResource,
  planLimitsOf,
} from "@halyard/contracts";
import { UnavailableError } from "@halyard/http";
import { fragment, json, type Sql, type Transaction } from "@halyard/postgres";
import type { Logger } from "pino";
import { entryToPublish } from "../outbox/outbox-message.ts";
import { appendMessages } from "../outbox/write.ts";

/**
 * The plans of the installation are one row and one entry of the snapshot. Readers resolve an organization's limits from
 * them.
 *
 * A leader writes its configured plans at the start of its term, under its lease. So if processes are started with
 * different plans, those of the newest leader apply, and the row changes at most once per term. A plan that an
 * organization uses stays in the row, even if the leader does not configure it: a process of the other configuration may
 * have assigned it a moment ago. A transaction that assigns a plan locks the row. Every plan of an organization is
 * therefore in the row.
 */
export type Plans = Readonly<Record<string, ConfiguredLimits>>;

type StoredPlans = { plans: Plans; version: number; updatedAt: Date };

/** Returns the entry of the plans in the snapshot. */
export function plansEntry({ plans, version, updatedAt }: StoredPlans): EntryOf<"plans"> {
  const value = { limits: plans, version, committed_at: updatedAt.toISOString() };
  return { address: { kind: "plans" }, value: { kind: "plans", ...value } };
}

const columns = fragment`limits as plans, version, updated_at as "updatedAt"`;

/** Returns the plans; undefined before a process has written them for the first time. */
export async function readPlans(sql: Sql | Transaction): Promise<StoredPlans | undefined> {
  const [stored] = await sql<StoredPlans[]>`select ${columns} from plans`;
  return stored;
}

/** Reads the plans to assign one of them. No plan is removed until the transaction ends. */
export async function lockPlans(tx: Transaction): Promise<Plans> {
  const [stored] = await tx<StoredPlans[]>`select ${columns} from plans for share`;
  if (stored === undefined) throw notStored();
  return stored.plans;
}

/** Reads the plans as the API lists them: in ascending order of requests per month, unlimited ones last. */
export async function listPlans(sql: Sql): Promise<PlanResource[]> {
  const stored = await readPlans(sql);
  if (stored === undefined) throw notStored();
  const requestsOf = ({ limits }: PlanResource) => limits.requests_per_month ?? Infinity;
  return Object.entries(stored.plans)
    .map(([name, limits]) => ({ name, limits: planLimitsOf(limits) }))
    .sort((one, other) => {
      if (requestsOf(one) !== requestsOf(other)) return requestsOf(one) - requestsOf(other);
      return one.name < other.name ? -1 : 1;
    });
}

const notStored = () => new UnavailableError("The plans have not been stored yet.");

export type PlanOptions = { plans: Plans; now: () => Date; newId: () => string; logger: Logger };

/** Writes the configured plans as the next version, unless they are stored already. */
export async function writePlans(
  tx: Transaction,
  { plans: configured, now, newId, logger }: PlanOptions,
): Promise<void> {
  const [stored] = await tx<StoredPlans[]>`select ${columns} from plans for update`;
  const used = await countOnOtherPlans(tx, configured);
  const isUsed = (name: string) => used.some(({ plan }) => plan === name);
  const kept = Object.entries(stored?.plans ?? {}).filter(([name]) => isUsed(name));
  if (used.length > 0)
    logger.warn({ plans: used }, "organizations have plans that are not configured; they are kept");
  const plans = { ...Object.fromEntries(kept), ...configured };
  if (isDeepStrictEqual(stored?.plans, plans)) return;
  const [written] = await tx<[StoredPlans]>`
    insert into plans as stored (limits, version, updated_at)
    values (${json(plans)}, 1, ${now()})
    on conflict (only_row) do update
      set limits = excluded.limits, version = stored.version + 1,
          updated_at = greatest(stored.updated_at, excluded.updated_at)
    returning ${columns}`;
  await appendMessages(tx, [entryToPublish(plansEntry(written))], newId);
}

/**
 * Throws if an organization has a plan that is not configured. Writes the plans of a new database, so that
 * organizations can be created before a leader exists.
 */
export async function preparePlans(sql: Sql, options: PlanOptions): Promise<void> {
  const missing = await countOnOtherPlans(sql, options.plans);
  if (missing.length > 0)
    throw new ConfigurationError(
      missing.map(
        ({ plan, organizations }) =>
          `PLANS has no plan ${JSON.stringify(plan)}, which ${organizations === 1 ? "one organization has" : `${organizations} organizations have`}. Configure it, or give them another plan first.`,
      ),
    );
  if ((await readPlans(sql)) === undefined) await sql.begin((tx) => writePlans(tx, options));
}

/** Counts the organizations on each plan that is not configured. */
async function countOnOtherPlans(sql: Sql | Transaction, configured: Plans) {
  return sql<{ plan: string; organizations: number }[]>`
    select plan, count(*)::integer as organizations
    from organizations
    where plan <> all(${Object.keys(configured)})
    group by plan
    order by plan`;
}
