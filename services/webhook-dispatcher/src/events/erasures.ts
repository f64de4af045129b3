import { type DomainEvent, erasedEmail, type UserErased } from "@halyard/contracts";
import { isOutage, type Sql, type Transaction } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";

/**
 * Erased users. A new delivery contains no erased address, and batches replace the address in the stored payloads. An
 * attempt that is in progress still sends it.
 *
 * A transaction that creates deliveries holds this lock in share mode while it reads the erased users. So it commits
 * before an erasure is recorded, and the batches find its deliveries, or it sees the erasure.
 */
const erasureLock = 5_170_432;

/** Records an erasure. Batches then visit all deliveries, also if the erasure is received again. */
export async function recordErasure(
  sql: Sql,
  { user_id: userId, organization_id: organizationId }: UserErased,
): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${erasureLock})`;
    await tx`
      insert into erased_users (user_id, organization_id, erased_at, visited_up_to)
      values (${userId}, ${organizationId}, now(), ${beforeEveryId})
      on conflict (user_id) do update
        set erased_at = excluded.erased_at, visited_up_to = excluded.visited_up_to`;
  });
}

const beforeEveryId = "00000000-0000-0000-0000-000000000000";

/** Returns the user who caused an event, without an erased address. */
export async function readActor(
  tx: Transaction,
  { triggered_by: actor }: Pick<DomainEvent, "triggered_by">,
): Promise<DomainEvent["triggered_by"]> {
  const [, erased] = await Promise.all([
    tx`select pg_advisory_xact_lock_shared(${erasureLock})`,
    tx`select from erased_users where user_id = ${actor.id}`,
  ]);
  return erased.count === 0 ? actor : { id: actor.id, email: erasedEmail(actor.id) };
}

/** Maximum number of deliveries per batch. Payloads can have hundreds of kilobytes. */
const batchSize = 200;

/**
 * Replaces the address of one erased user in the next deliveries, also at the beginning of the text for chat systems, which
 * follows it. Returns whether there was a user. The text of other members stays the same: their quotes are escaped, so
 * they cannot match.
 */
export async function eraseNextBatch(sql: Sql): Promise<boolean> {
  return sql.begin(async (tx) => {
    const [user] = await tx<{ id: string; organizationId: string; visitedUpTo: string }[]>`
      select user_id as id, organization_id as "organizationId", visited_up_to as "visitedUpTo"
      from erased_users
      where visited_up_to is not null
      order by user_id
      limit 1
      for update skip locked`;
    if (user === undefined) return false;
    const page = await tx<{ id: string }[]>`
      select id from deliveries where id > ${user.visitedUpTo} order by id limit ${batchSize}`;
    const ids = page.map(({ id }) => id);
    const actor = `"triggered_by":{"id":"${user.id}","email":`;
    const email = erasedEmail(user.id);
    const address = `(${actor.replace("{", "\\{")})"((?:[^"\\\\]|\\\\.)*)"`;
    await tx`
      with naming as (
        select id from deliveries
        where id = any(${ids}::uuid[]) and organization_id = ${user.organizationId}
          and position(${actor} in payload) > 0
        order by id
        for update
      )
      update deliveries
      set payload = regexp_replace(
        regexp_replace(payload, ${`${address}(\\},"text":")\\2 `}, ${`\\1"\\2"\\3${email} `}),
        ${address}, ${`\\1"${email}"`})
      from naming where deliveries.id = naming.id`;
    const visitedUpTo = ids.length < batchSize ? null : (ids.at(-1) ?? null);
    await tx`update erased_users set visited_up_to = ${visitedUpTo} where user_id = ${user.id}`;
    return true;
  });
}

const pollIntervalMs = 10_000;

export function startErasing(options: { sql: Sql; logger: Logger }): { stop(): Promise<void> } {
  const { sql, logger } = options;
  return startInterval(
    async (signal) => {
      while (!signal.aborted && (await eraseNextBatch(sql)));
    },
    {
      intervalMs: pollIntervalMs,
      isExpected: isOutage,
      onFailure: (err) => logger.warn({ err }, "erased addresses could not be replaced; retrying"),
    },
  );
}
