import { usageStream } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import postgres from "postgres";
import type { Bench } from "../benchmark.ts";
import { nowMs } from "../clock.ts";
import { percent } from "../http/beside-bare.ts";
import { cpuMs, cpuMsOfTree } from "../processes/process-usage.ts";
import type { Figure } from "../reporting/figure.ts";
import { number } from "../reporting/table.ts";
import { quantile } from "../statistics.ts";
import { type Nats, type Postgres, startPostgres } from "../system/backends.ts";
import { awaitReady, type Service, startUsageMetering } from "../system/services.ts";
import { snapshotContent } from "../system/snapshot-content.ts";
import { writeSnapshot } from "../system/write-snapshot.ts";
import { until } from "../until.ts";
import {
  environmentsPerMessage,
  type Sent,
  type SimulatedEdges,
  startSimulatedEdges,
} from "./simulated-edges.ts";

/** Measures one usage-metering process: at the rate of fifty edges, and at its maximum rate. */
const edges = 50;
const perSecond = 100;
const environments = 200;
const flagsPerEnvironment = 10;
const size = { warmUp: 500, steady: 2_000, backlog: 10_000 };
const quickSize = { warmUp: 10, steady: 20, backlog: 100 };
/**
 * Edges collect counts for half a second and must receive new totals within two seconds of the requests.
 */
const goalP99Ms = 500;

export async function measureMeteringIntake(bench: Bench, nats: Nats) {
  const postgresServer = await startPostgres(bench);
  const content = snapshotContent({ environments, flagsPerEnvironment });
  await writeSnapshot(nats.url, content);
  const options = { nats, postgres: postgresServer, core: bench.cores?.server };
  const { warmUp, steady, backlog } = bench.quick ? quickSize : size;
  const metering = await startUsageMetering(bench, options);
  await awaitReady(metering);
  const sql = openAdmin(bench, postgresServer);
  const sender = await startSimulatedEdges(bench, { nats, edges, content });
  const servers = { metering, postgres: postgresServer };
  await sender.send({ messages: warmUp, perSecond });

  bench.say(`${edges} edges, ${perSecond} messages per second`);
  const even = await measureSteady(sql, { sender, messages: steady, servers });
  await metering.child.stop();

  bench.say(`${backlog} waiting messages`);
  const queue = await openQueue(bench, nats);
  await sender.sendAll(backlog);
  const again = await startUsageMetering(bench, options);
  const burst = await measureBacklog(queue, again);
  await assertAllCounted(sql, sender);
  await again.child.stop();
  return {
    figures: figuresOf(even, burst),
    notes: notesOf(even, burst, backlog),
    version: postgresServer.version,
  };
}

type Servers = { metering: Service; postgres: Postgres };
type Steady = Awaited<ReturnType<typeof measureSteady>>;

async function measureSteady(
  sql: Sql,
  options: { sender: SimulatedEdges; messages: number; servers: Servers },
) {
  const { metering, postgres: database } = options.servers;
  const watcher = watchCounted(sql);
  const before = {
    atMs: nowMs(),
    metering: cpuMs(metering.child.pid),
    database: cpuMsOfTree(database.pid),
  };
  const sent = await options.sender.send({ messages: options.messages, perSecond });
  const elapsedMs = nowMs() - before.atMs;
  const meteringMs = cpuMs(metering.child.pid) - before.metering;
  const databaseMs = cpuMsOfTree(database.pid) - before.database;
  const countedAt = await watcher.allOf(sent);
  return {
    lagsMs: sent.map((message, index) => (countedAt[index] as number) - message.sentMs),
    meteringShare: meteringMs / elapsedMs,
    databaseShare: databaseMs / elapsedMs,
    meteringMicroseconds: (meteringMs * 1e3) / sent.length,
  };
}

/** Polling interval, which is the resolution of the lag. */
const pollIntervalMs = 5;

/** Records when each message was visible in the database, after its commit. */
function watchCounted(sql: Sql) {
  const seenMs = new Map<string, number[]>();
  let watching = true;
  const watched = watch();

  async function watch(): Promise<void> {
    while (watching) {
      const rows = await sql<{ edge: string; last: number }[]>`
        select edge, (upper(counted) - 1)::int as last from usage.edges where not isempty(counted)`;
      const now = nowMs();
      for (const { edge, last } of rows) {
        const times = seenMs.get(edge) ?? [];
        seenMs.set(edge, times);
        for (let sequence = 1; sequence <= last; sequence += 1) times[sequence] ??= now;
      }
      await new Promise((resolve) => setTimeout(resolve, pollIntervalMs));
    }
  }

  return {
    async allOf(sent: readonly Sent[]): Promise<number[]> {
      const seenAt = ({ edge, sequence }: Sent) => seenMs.get(edge)?.[sequence];
      await until("all is counted", async () => sent.every((each) => seenAt(each) !== undefined));
      watching = false;
      await watched;
      return sent.map((each) => seenAt(each) as number);
    },
  };
}

/** Returns a function that counts the messages in the queue. */
async function openQueue(bench: Bench, nats: Nats): Promise<() => Promise<number>> {
  const connection = await connect({ servers: nats.url });
  bench.afterwards(() => connection.close());
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const subject = usageStream.recorded.subject;
  return async () => {
    const { state } = await manager.streams.info(usageStream.name, { subjects_filter: subject });
    return state.subjects?.[subject] ?? 0;
  };
}

/** Measures from the first processed message to the last. */
async function measureBacklog(queue: () => Promise<number>, metering: Service) {
  const atFirst = await queue();
  let left = atFirst;
  await until("counting begins", async () => {
    left = await queue();
    return left < atFirst;
  });
  const [beganMs, messages, cpuBefore] = [nowMs(), left, cpuMs(metering.child.pid)];
  await until("the queue is empty", async () => (await queue()) === 0);
  const elapsedMs = nowMs() - beganMs;
  return {
    perSecond: (messages / elapsedMs) * 1e3,
    meteringShare: (cpuMs(metering.child.pid) - cpuBefore) / elapsedMs,
  };
}

/** Fails if requests were lost or counted twice. */
async function assertAllCounted(sql: Sql, sender: SimulatedEdges): Promise<void> {
  const [row] = await sql<[{ requests: number }]>`
    select coalesce(sum(requests), 0)::float8 as requests from usage.request_hours`;
  if (row.requests !== sender.requests())
    throw new Error(`${sender.requests()} requests were sent and ${row.requests} counted`);
}

function openAdmin(bench: Bench, { adminUrl }: Postgres): Sql {
  const sql = postgres(adminUrl, { max: 1, onnotice: () => undefined });
  bench.afterwards(() => sql.end());
  return sql as unknown as Sql;
}

type Backlog = Awaited<ReturnType<typeof measureBacklog>>;

function figuresOf(even: Steady, burst: Backlog): Figure[] {
  const what = `${edges} edges, ${perSecond} messages per second`;
  return [
    { what: `${what}: sent to counted, median`, unit: "ms", measured: quantile(even.lagsMs, 0.5) },
    {
      what: `${what}: sent to counted, p99`,
      unit: "ms",
      measured: quantile(even.lagsMs, 0.99),
      goal: { of: "measured", below: goalP99Ms },
    },
    {
      what: "maximum rate of one process vs. 50 edges",
      unit: "/s",
      measured: burst.perSecond,
      baseline: perSecond,
      goal: { of: "ratio", atLeast: 2 },
    },
  ];
}

function notesOf(even: Steady, burst: Backlog, backlog: number): string[] {
  return [
    `A message has ${environmentsPerMessage} environments. At ${perSecond} messages per second, usage-metering ` +
      `used ${percent(even.meteringShare)} of a core, ${number(even.meteringMicroseconds)} µs per message, ` +
      `and PostgreSQL ${percent(even.databaseShare)}.`,
    `With ${backlog.toLocaleString("en-US")} messages waiting, usage-metering used ` +
      `${percent(burst.meteringShare)} of its core. Every request was counted exactly once.`,
  ];
}
