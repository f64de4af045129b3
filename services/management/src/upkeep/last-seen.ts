import { checkUsageLastSeen, type UsageLastSeen, usageStream } from "@halyard/contracts";
import { type Consumption, consumeJson, type QueueMetrics } from "@halyard/jetstream";
import { isOutage, json, type Transaction } from "@halyard/postgres";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { Write, Writer } from "../outbox/write.ts";
import { touchSessions } from "../people/sessions.ts";

/** Messages are few and not urgent, and each contains up to thousands of keys and flags. */
const concurrency = 1;

/** Consumes messages with the times at which keys, sessions and flags were last used, and stores these times. */
export function consumeLastSeen({
  connection,
  writer,
  now,
  metrics,
  logger,
}: {
  connection: NatsConnection;
  writer: Writer;
  now: () => Date;
  metrics: QueueMetrics;
  logger: Logger;
}): Consumption {
  return consumeJson({
    ...{ connection, metrics, logger },
    verify: "unsigned",
    stream: usageStream.name,
    consumer: usageStream.lastSeen.consumer,
    subject: usageStream.lastSeen.subject,
    concurrency,
    check: checkUsageLastSeen,
    async handle(seen) {
      await writer(async (write) => {
        await recordLastSeen(write.tx, seen);
        await touchUsed({ ...write, now }, seen.keys);
        return {};
      });
      return "done";
    },
    isOutage,
  });
}

/**
 * Stores when keys, environments and flags were last used. The latest time wins, in any order of messages. Unknown ids,
 * of deleted or invented resources, are skipped. A time in the future, from a clock that is ahead, is replaced by the
 * present time. Otherwise it would hide all later use until that time.
 *
 * Rows are written in the order of their ids, so that concurrent transactions cannot deadlock.
 */
async function recordLastSeen(tx: Transaction, seen: UsageLastSeen): Promise<void> {
  await recordKeys(tx, seen.keys);
  await recordEnvironments(tx, seen.environments);
  await recordFlags(tx, seen.flags);
}

/** Maximum age of a use that extends a session. After an outage, messages arrive late. */
const recentMs = 10 * 60 * 1_000;
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

async function touchUsed(
  write: Pick<Write, "tx" | "publish"> & { now: () => Date },
  keys: UsageLastSeen["keys"],
): Promise<void> {
  const sinceMs = write.now().getTime() - recentMs;
  const used = keys.filter(
    ({ key_id, used_at }) => uuid.test(key_id) && Date.parse(used_at) > sinceMs,
  );
  if (used.length > 0)
    await touchSessions(
      write,
      used.map(({ key_id }) => key_id),
    );
}

async function recordKeys(tx: Transaction, keys: UsageLastSeen["keys"]): Promise<void> {
  if (keys.length === 0) return;
  await tx`
    insert into keys_last_seen as known (key_id, used_at)
    select key.id, least(max(seen.used_at), clock_timestamp())
    from jsonb_to_recordset(${json(keys)}) as seen (key_id text, used_at timestamptz)
    join api_keys as key on key.id = seen.key_id
    group by key.id
    order by key.id
    on conflict (key_id) do update set used_at = excluded.used_at
      where known.used_at < excluded.used_at`;
}

async function recordEnvironments(
  tx: Transaction,
  environments: UsageLastSeen["environments"],
): Promise<void> {
  if (environments.length === 0) return;
  await tx`
    insert into environments_last_seen as known (environment_id, evaluated_at)
    select environment.id, least(max(seen.evaluated_at), clock_timestamp())
    from jsonb_to_recordset(${json(environments)})
      as seen (environment_id uuid, evaluated_at timestamptz)
    join environments as environment on environment.id = seen.environment_id
    group by environment.id
    order by environment.id
    on conflict (environment_id) do update set evaluated_at = excluded.evaluated_at
      where known.evaluated_at < excluded.evaluated_at`;
}

async function recordFlags(tx: Transaction, flags: UsageLastSeen["flags"]): Promise<void> {
  if (flags.length === 0) return;
  await tx`
    insert into flags_last_seen as known (flag_id, environment_id, evaluated_at)
    select state.flag_id, state.environment_id, least(max(seen.evaluated_at), clock_timestamp())
    from jsonb_to_recordset(${json(flags)})
      as seen (flag_id uuid, environment_id uuid, evaluated_at timestamptz)
    join flag_states as state
      on state.flag_id = seen.flag_id and state.environment_id = seen.environment_id
    group by state.flag_id, state.environment_id
    order by state.flag_id, state.environment_id
    on conflict (flag_id, environment_id) do update set evaluated_at = excluded.evaluated_at
      where known.evaluated_at < excluded.evaluated_at`;
}
