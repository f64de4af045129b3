import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { join } from "node:path";
import {
  call,
  eventually,
  flagInSnapshot,
  openSnapshotBucket,
  type ServiceProcess,
  startServiceProcess,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type NatsGate, openNatsGate } from "../src/system/nats-gate.ts";
import { type System, startSystem } from "../src/system/system.ts";
import { createTenant, must, type Tenant } from "../src/system/tenancy.ts";

/**
 * Causes faults at every interface of the system, with a mark in all their texts: errors of PostgreSQL and NATS,
 * responses of upstreams and of webhook targets, malformed entries and files. Every process must log the fault, and no
 * log may contain the mark.
 */
const mark = "s3cret-mark";
const schemas = {
  management: ["flags"],
  scheduler: ["schedules"],
  webhooks: ["attempts"],
  usage: ["request_hours"],
};

const events = ["flag.toggled"];

describe("given faults whose texts contain a mark", () => {
  let system: System;
  let tenant: Tenant;
  let gateway: ServiceProcess;
  let edge: ServiceProcess;
  let edgeGate: NatsGate;
  let garbage: Server;

  beforeAll(async () => {
    garbage = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.end(`HTTP/1.1 200 ${mark}\r\n${mark}: \0${mark}\r\n\r\n`);
    });
    garbage.listen(0, "127.0.0.1");
    await once(garbage, "listening");
    system = await startSystem({
      managements: 1,
      schedulers: 1,
      dispatchers: 1,
      meterings: 1,
      edges: 1,
      settings: () => trace,
    });
    tenant = await createTenant(management().url, { name: "Marked" });
    gateway = await startServiceProcess("gateway", {
      ...trace.gateway,
      UPSTREAM_MANAGEMENT_URL: garbageUrl(),
      UPSTREAM_SCHEDULER_URL: garbageUrl(),
      UPSTREAM_SDK_EDGE_URL: garbageUrl(),
      UPSTREAM_USAGE_METERING_URL: garbageUrl(),
      UPSTREAM_WEBHOOK_DISPATCHER_URL: garbageUrl(),
      UPSTREAM_DASHBOARD_URL: garbageUrl(),
    });
    const cache = join(system.directory, "garbage.cache");
    writeFileSync(cache, mark);
    edgeGate = await openNatsGate(system.nats.url);
    edge = await startServiceProcess("sdk-edge", {
      ...trace["sdk-edge"],
      NATS_URL: edgeGate.url,
      SNAPSHOT_CACHE_FILE: cache,
    });
  });
  afterAll(async () => {
    await gateway?.kill();
    await edge?.kill();
    await edgeGate?.close();
    await system?.close();
    garbage?.close();
  });

  const level = { LOG_LEVEL: "trace" };
  const trace = {
    management: level,
    scheduler: level,
    "webhook-dispatcher": level,
    "usage-metering": level,
    "sdk-edge": level,
    gateway: level,
  };
  const management = () => system.managements[0] as ServiceProcess;
  const scheduler = () => system.schedulers[0] as ServiceProcess;
  const dispatcher = () => system.dispatchers[0] as ServiceProcess;
  const metering = () => system.meterings[0] as ServiceProcess;
  const garbageUrl = () => `http://127.0.0.1:${(garbage.address() as AddressInfo).port}`;

  const logsLine = (process: ServiceProcess, message: string) =>
    eventually(() => process.log(), {
      because: `the log contains "${message}"`,
      until: (log) => log.includes(`"${message}"`),
    });

  async function failInserts(): Promise<void> {
    for (const [schema, tables] of Object.entries(schemas)) {
      await system.sql.unsafe(`
        create function ${schema}.fail() returns trigger language plpgsql as $$
        begin
          raise exception 'message ${mark}' using detail = '${mark}', hint = '${mark}';
        end $$`);
      for (const table of tables)
        await system.sql.unsafe(`create trigger fail before insert on ${schema}.${table}
          for each row execute function ${schema}.fail()`);
    }
  }

  it("logs errors of PostgreSQL without their texts", async () => {
    const { projectId, environmentId, serverKey: key, clientKey } = tenant;
    const body = { key: "checkout", name: "Checkout" };
    const flag = await must(`${management().url}/api/v1/flags`, { method: "POST", key, body });
    const webhook = { name: "A webhook", url: `${garbageUrl()}/${mark}?token=${mark}`, events };
    const webhooks = `${dispatcher().url}/api/v1/projects/${projectId}/webhooks`;
    await eventually(() => call(webhooks, { method: "POST", key, body: webhook }), {
      until: ({ status }) => status === 201,
    });
    await failInserts();

    const failed = await call(`${management().url}/api/v1/flags`, {
      method: "POST",
      key,
      body: { key: mark, name: mark },
    });
    expect(failed.status).toBe(500);
    const schedule = `/api/v1/flags/${flag.id}/environments/${environmentId}/schedule`;
    const scheduled = await eventually(
      () =>
        call(scheduler().url + schedule, {
          method: "POST",
          key,
          body: { enable_at: "2099-01-01T00:00:00Z" },
        }),
      { until: ({ status }) => ![401, 404, 503].includes(status) },
    );
    expect(scheduled.status).toBe(500);
    await must(`${management().url}/api/v1/flags/${flag.id}`, {
      method: "PATCH",
      key,
      body: { enabled: true },
    });
    const flags = `${system.edges[0]?.url}/api/v1/sdk/flags`;
    await eventually(() => call(flags, { key: clientKey }), {
      until: ({ status }) => status === 200,
    });

    await logsLine(management(), "request failed");
    await logsLine(scheduler(), "request failed");
    await logsLine(dispatcher(), "an attempt could not be recorded");
    await logsLine(metering(), "dead-lettered a message");
  });

  it("logs errors of NATS without their texts", async () => {
    const gates = [system.managements, system.schedulers, system.dispatchers, system.meterings];
    for (const [replica] of gates) replica?.gate.sendToClient(`-ERR '${mark}'\r\n`);
    edgeGate.sendToClient(`-ERR '${mark}'\r\n`);
    for (const process of [management(), scheduler(), dispatcher(), metering(), edge])
      await logsLine(process, "NATS reports an error");
  });

  it("logs malformed entries and files without their content", async () => {
    const bucket = await openSnapshotBucket(system.nats.url);
    const entry = flagInSnapshot(tenant);
    await bucket.spoil(entry, { ...entry.value, enabled: mark, key: { [mark]: mark } });
    await logsLine(edge, "an entry of the snapshot does not match its schema");
    await logsLine(edge, "the snapshot cache is unusable");
    await bucket.close();
  });

  it("logs malformed responses of upstreams without their texts", async () => {
    for (const path of ["/api/v1/flags", "/api/v1/sdk/flags", "/api/v1/usage"])
      expect((await call(`${gateway.url}${path}?token=${mark}`)).status).toBe(503);
    await logsLine(gateway, "request not forwarded");
  });

  it("writes the mark to no log", () => {
    const processes = [management(), scheduler(), dispatcher(), metering(), edge, gateway];
    const found = processes.flatMap((process) =>
      process
        .log()
        .split("\n")
        .filter((line) => line.includes(mark)),
    );
    expect(found).toEqual([]);
  });
});
