import { raisedByPlan } from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/http";
import type { Sql, Transaction } from "@halyard/postgres";

/** The size of the rules of an organization, over all its environments, and its plan. */
type ConfigurationSize = {
  bytes: number;
  plan: string;
  /** `limits.configuration_bytes` of the plan; null: unlimited. */
  limit: number | null;
};

/**
 * Writes states with other rules, if the plan allows their size. Triggers of the database keep the sum. Its row is
 * locked before the write and until the transaction ends, so that concurrent writes cannot exceed the limit together.
 * The first write of an organization creates the row, and locks it then.
 * The caller has locked everything else that it changes. A problem must roll back the transaction. `write` sends all of
 * its statements without a wait between them. Otherwise the sum would be read before the last ones.
 */
export async function writeWithinLimit(
  tx: Transaction,
  organizationId: string,
  write: () => Promise<unknown>,
): Promise<Problem | undefined> {
  const [before, , after] = await Promise.all([
    lockBytes(tx, organizationId),
    write(),
    readSize(tx, organizationId),
  ]);
  return after && checkLimit(before, after);
}

/**
 * Rejects an addition that exceeds the limit and is written later in parts. The size is read without a lock, so
 * concurrent writes can exceed the limit by their own sizes.
 */
export async function checkAddition(
  sql: Sql | Transaction,
  organizationId: string,
  bytes: number,
): Promise<Problem | undefined> {
  if (bytes <= 0) return undefined;
  const size = await readSize(sql, organizationId);
  return size && checkLimit(size.bytes, { ...size, bytes: size.bytes + bytes });
}

/** Rejects a write that grows beyond the limit. Smaller rules are accepted, even if they are still above it. */
function checkLimit(before: number, after: ConfigurationSize): Problem | undefined {
  const { bytes, plan, limit } = after;
  if (limit === null || bytes <= limit || bytes <= before) return undefined;
  const remaining = Math.max(0, limit - before);
  return createProblem(
    "RATE_001",
    `The organization's plan ${JSON.stringify(plan)} allows ${limit} bytes of rules and values. The organization has ${before}, and the change adds ${bytes - before}. ${raisedByPlan}`,
    {
      "ratelimit-policy": `"configuration_bytes";q=${limit}`,
      ratelimit: `"configuration_bytes";r=${remaining}`,
    },
  );
}

async function lockBytes(tx: Transaction, organizationId: string): Promise<number> {
  const [size] = await tx<{ bytes: number }[]>`
    select bytes from configuration_sizes where organization_id = ${organizationId} for update`;
  return size?.bytes ?? 0;
}

async function readSize(
  sql: Sql | Transaction,
  organizationId: string,
): Promise<ConfigurationSize | undefined> {
  const [size] = await sql<ConfigurationSize[]>`
    select coalesce(size.bytes, 0) as bytes, organization.plan,
      (plans.limits -> organization.plan ->> 'configuration_bytes')::bigint as "limit"
    from organizations as organization
    cross join plans
    left join configuration_sizes as size on size.organization_id = organization.id
    where organization.id = ${organizationId}`;
  return size;
}
