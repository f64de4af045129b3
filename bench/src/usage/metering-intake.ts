import { usageStream } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { jetstreamManager } from "@nats-io/jetstream";
import type { Bench } from "../benchmark.ts";
import { cpuMs, cpuMsOfTree } from "../processes/process-usage.ts";
import { below, count, number, percent, ratioAtLeast } from "../reporting.ts";
import { connectNats, type Nats, openTables, startPostgres } from "../system/backends.ts";
import { awaitReady, launchService, type Service } from "../system/services.ts";
import { snapshotContent } from "../system/snapshot-content.ts";
import { startSnapshot } from "../system/snapshot-edge.ts";
import { nowMs, until } from "../time.ts";
import {
  environmentsPerMessage,
  type Sent,
  type SimulatedEdges,
  startSimulatedEdges,
} from "./simulated-edges.ts";

/** Measures one usage-metering process: at the rate of fifty edges, and at its maximum rate. */
const edges = 50;
const perSecond = 100;
const size = { warmUp: 500, steady: 2_000, backlog: 10_000 };
const quickSize = { warmUp: 10, steady: 20, backlog: 100 };
/** Edges collect counts for half a second and must receive new totals within two seconds of the requests. */
const goals = { p99: below(500) };

export async function measureMeteringIntake(bench: Bench): Promise<void> {
  const content = snapshotContent({ environments: 200, flagsPerEnvironment: 10 });
  const [postgres, nats] = await Promise.all([startPostgres(bench), startSnapshot(bench, content)]);
  const { warmUp, steady, backlog } = bench.quick ? quickSize : size;
  const metering = await launchService(bench, "usage-metering", { nats, postgres });
  await awaitReady(metering);
  const sql = openTables(bench, postgres, "usage");
  const sender = await startSimulatedEdges(bench, { nats, edges, content });
  await sender.send({ messages: warmUp, perSecond });

  bench.say(`${edges} edges, ${perSecond} messages per second`);
  const used = () => ({ atMs: nowMs(), own: cpuMs(metering.pid), tree: cpuMsOfTree(postgres.pid) });
  const before = used();
  const sending = sender.send({ messages: steady, perSecond });
  const [after, lagsMs] = await Promise.all([sending.then(used), lagsOf(sql, sending)]);
  await metering.stop();

  bench.say(`${backlog} waiting messages`);
  const queue = await openQueue(bench, nats);
  await sender.sendAll(backlog);
  const again = await launchService(bench, "usage-metering", { nats, postgres });
  const burst = await measureBacklog(queue, again);
  await assertAllCounted(sql, sender);
  await again.stop();

  const prefix = `${edges} edges, ${perSecond} messages per second: sent to counted, `;
  bench.latencies(prefix, lagsMs, { goals });
  bench.figure("maximum rate of one process vs. 50 edges", "/s", burst.perSecond, {
    baseline: perSecond,
    goal: ratioAtLeast(2),
  });
  const elapsedMs = after.atMs - before.atMs;
  const [meteringMs, databaseMs] = [after.own - before.own, after.tree - before.tree];
  bench.note`A message has ${environmentsPerMessage} environments. At ${perSecond} messages per second, usage-metering used ${percent(meteringMs / elapsedMs)} of a core, ${number((meteringMs * 1e3) / steady)} µs per message, and PostgreSQL ${percent(databaseMs / elapsedMs)}.`;
  bench.note`With ${count(backlog)} messages waiting, usage-metering used ${percent(burst.share)} of its core. Every request was counted exactly once.`;
}

/** Polling interval, which is the resolution of the lag. */
const pauseMs = 5;

/** Returns the time from sending to counting of each message: until it is visible in the database. */
async function lagsOf(sql: Sql, sending: Promise<Sent[]>): Promise<number[]> {
  const seenMs = new Map<string, number[]>();
  const seenAt = ({ edge, sequence }: Sent) => seenMs.get(edge)?.[sequence];
  let sent: Sent[] | undefined;
  void sending.then((all) => {
    sent = all;
  });
  const areCounted = async () => {
    const rows = await sql<{ edge: string; last: number }[]>`
      select edge, (upper(counted) - 1)::int as last from edges where not isempty(counted)`;
    const now = nowMs();
    for (const { edge, last } of rows) {
      const times = seenMs.get(edge) ?? [];
      seenMs.set(edge, times);
      for (let sequence = 1; sequence <= last; sequence += 1) times[sequence] ??= now;
    }
    return sent?.every((each) => seenAt(each) !== undefined) ?? false;
  };
  await until("all messages are counted", areCounted, { timeoutMs: 120_000, pauseMs });
  return (await sending).map((each) => (seenAt(each) as number) - each.sentMs);
}

/** Returns a function that counts the messages in the queue. */
async function openQueue(bench: Bench, nats: Nats): Promise<() => Promise<number>> {
  const manager = await jetstreamManager(await connectNats(bench, nats), { checkAPI: false });
  const subject = usageStream.recorded.subject;
  return async () => {
    const { state } = await manager.streams.info(usageStream.name, { subjects_filter: subject });
    return state.subjects?.[subject] ?? 0;
  };
}

/** Measures from the first processed message to the last. */
async function measureBacklog(queue: () => Promise<number>, { pid }: Service) {
  const atFirst = await queue();
  let left = atFirst;
  await until("counting begins", async () => {
    left = await queue();
    return left < atFirst;
  });
  const [beganMs, messages, cpuBefore] = [nowMs(), left, cpuMs(pid)];
  await until("the queue is empty", async () => (await queue()) === 0);
  const elapsedMs = nowMs() - beganMs;
  return { perSecond: (messages / elapsedMs) * 1e3, share: (cpuMs(pid) - cpuBefore) / elapsedMs };
}

/** Fails if requests were lost or counted twice. */
async function assertAllCounted(sql: Sql, sender: SimulatedEdges): Promise<void> {
  const [row] = await sql<[{ requests: number }]>`
    select coalesce(sum(requests), 0)::float8 as requests from request_hours`;
  if (row.requests !== sender.requests())
    throw new Error(`${sender.requests()} requests were sent and ${row.requests} counted`);
}
