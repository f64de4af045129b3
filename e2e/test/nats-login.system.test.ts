import {
  call,
  createTestDatabase,
  eventually,
  type ServiceProcess,
  startNatsProxy,
  startServiceProcess,
  startTestNats,
  type TestDatabase,
  type TestNats,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";

/** Tests processes with a wrong password for NATS. */
let nats: TestNats;
let database: TestDatabase;

beforeAll(async () => {
  [nats, database] = await Promise.all([startTestNats(), createTestDatabase()]);
});
afterAll(async () => {
  await Promise.all([nats.stop(), database.drop()]);
});

const secrets = {
  OPERATOR_TOKEN: "the operator's token of this test",
  WEBHOOK_SECRET_KEYS: `tests:${Buffer.alloc(32, "k").toString("base64")}`,
};

describe("given a process whose login NATS rejects", () => {
  it.each([
    { service: "management", schema: "management" },
    { service: "scheduler", schema: "scheduler" },
    { service: "webhook-dispatcher", schema: "webhooks" },
    { service: "usage-metering", schema: "usage" },
    { service: "sdk-edge", schema: undefined },
  ] as const)("$service shows the reason in /readyz and logs it once", async (one) => {
    let attempts = 0;
    const proxy = await startNatsProxy(nats.url, (client, server) => {
      attempts += 1;
      client.pipe(server).pipe(client);
    });
    const process = await startServiceProcess(one.service, {
      ...(one.schema && { POSTGRES_URL: database.runtimeUrls[one.schema] }),
      ...secrets,
      NATS_URL: proxy.url,
      NATS_PASSWORD: "wrong",
    });
    try {
      const problem = await eventually(() => problemOf(process));
      expect(problem).toBe("AuthorizationError");
      await eventually(() => process.log().includes("NATS rejected the login"));
      // A new attempt starts after the previous one was rejected and its reason processed.
      const before = attempts;
      await eventually(() => attempts > before + 3);
      expect(process.log().match(/NATS rejected the login/g)).toHaveLength(1);
    } finally {
      await process.kill();
      await proxy.close();
    }
  });
});

async function problemOf(process: ServiceProcess): Promise<string | undefined> {
  const { body } = await call(`${process.metricsUrl}/readyz`);
  return (body as { nats_problem?: string }).nats_problem;
}
