import { randomUUID } from "node:crypto";
import { evaluationsStream } from "@halyard/contracts";
import { createQueueMetrics, ensureStreams } from "@halyard/jetstream";
import { connectPostgres } from "@halyard/postgres";
import { createMetrics } from "@halyard/service";
import { createTestDatabase, eventually } from "@halyard/testing";
import { expect, it } from "@jest/globals";
import { pino } from "pino";
import { v7 as uuidv7 } from "uuid";
import { consumeUsage } from "../src/counting/consume-usage.ts";
import { createUsageMetrics } from "../src/counting/usage-metrics.ts";
import { makeEdge, makeTenant, openMetering } from "./usage-fixture.ts";

const logger = pino({ level: "silent" });

it("a report waits while only processes of release 0.1.0 run, which count the rest, and counts after the upgrade", async () => {
  const database = await createTestDatabase();
  const metering = await openMetering({ database });
  await ensureStreams(metering.manager, { replicas: 1 });
  // A process of release 0.1.0 reads the queue of the edges' own counts only.
  const sql = connectPostgres({
    ...{ url: database.runtimeUrls.usage, name: "older", maxConnections: 2, logger },
  });
  const metrics = createMetrics({ service: "usage-metering" });
  const older = consumeUsage({
    ...{ connection: metering.connection, sql, logger, onCounted: () => undefined },
    ...{ usageMetrics: createUsageMetrics(metrics), queueMetrics: createQueueMetrics(metrics) },
  });
  const tenant = makeTenant();
  const report = {
    report_id: randomUUID(),
    environment_id: tenant.environmentId,
    evaluated_at: new Date().toISOString(),
    flags: [{ flag_id: uuidv7(), true: 3, false: 2 }],
  };
  const { name: stream, reported } = evaluationsStream;
  await metering.client.publish(reported.subject, JSON.stringify(report));
  await metering.send(makeEdge().message([tenant.used({ requests: { ruleset: 1 } })]));
  await metering.allProcessed();
  expect(await metering.countedFor(tenant.organizationId)).toBe(1);
  const waiting = async () => (await metering.manager.streams.info(stream)).state.messages;
  expect(await waiting()).toBe(1);

  await metering.startReplica();
  await eventually(waiting, { until: (count) => count === 0 });
  const [row] = await metering.admin`select sum(evaluations)::integer as sum from flag_hours`;
  expect(row).toEqual({ sum: 5 });
  await older.stop();
  await sql.end();
  await metering.close();
});
