import { usageStream } from "@halyard/contracts";
import { ensureUsage } from "@halyard/jetstream";
import { call, eventually, startServiceProcess } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { makeTenant, openScheduler } from "./scheduler-fixture.ts";

/** Tests a scheduler process that limits the rate of keys and reports their last use. */
const tenant = makeTenant();
const flag = tenant.flag();

const scheduler = await openScheduler();
await scheduler.bucket.put(...tenant.entries, flag.entry);
const connection = await connect({ servers: scheduler.natsUrl });
const service = await startServiceProcess("scheduler", {
  POSTGRES_URL: scheduler.postgresUrl,
  NATS_URL: scheduler.natsUrl,
  // So slow that no request is granted again while the tests run.
  KEY_REQUESTS_PER_SECOND: "0.001",
  KEY_REQUESTS_BURST: "2",
});
afterAll(async () => {
  await service.kill();
  await connection.close();
  await scheduler.close();
});
await eventually(async () => (await call(`${service.url}/readyz`)).status === 200);

const ask = (key: string) => call(service.url + flag.path, { key });

describe("given a key that is used", () => {
  it("reports the time of the last use to management", async () => {
    const manager = await jetstreamManager(connection);
    await ensureUsage(manager, 1);
    expect((await ask(tenant.serverKey)).status).toBe(404);
    const message = await eventually(async () => {
      const stored = await manager.streams.getMessage(usageStream.name, {
        last_by_subj: usageStream.lastSeen.subject,
      });
      return stored ?? undefined;
    });
    const keyId = tenant.serverKey.split("_")[1];
    expect(message.json()).toMatchObject({ keys: [{ key_id: keyId }] });
  });
});

describe("given a key that exceeds its rate limit, and invalid keys", () => {
  it("returns 429 with the rate limit headers", async () => {
    const statuses = [];
    for (let index = 0; index < 3; index += 1)
      statuses.push((await ask(tenant.environmentOnlyKey)).status);
    expect(statuses).toEqual([404, 404, 429]);
    const rejected = await ask(tenant.environmentOnlyKey);
    expect(rejected.body.error.code).toBe("RATE_001");
    expect(rejected.headers.get("ratelimit-policy")).toBe('"requests";q=2;w=2000');
    const ofInvalidKeys = [];
    for (let index = 0; index < 3; index += 1) ofInvalidKeys.push((await ask("wrong")).status);
    expect(ofInvalidKeys).toEqual([401, 401, 429]);
  });
});
