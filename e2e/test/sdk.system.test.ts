import { type Client, createClient } from "@halyard/server-sdk";
import { eventually, type ServiceProcess } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type LoadBalancer, startLoadBalancer } from "../src/system/load-balancer.ts";
import { awaitReady, type System, startSystem } from "../src/system/system.ts";
import { createTenant, must, type Tenant } from "../src/system/tenancy.ts";
import { describeAudienceStory } from "./sdk/audience-story.ts";
import { describeExamples } from "./sdk/examples.ts";
import { describeHaproxyStory } from "./sdk/haproxy-story.ts";
import { describeTypedFlags } from "./sdk/typed-flags.ts";

const clientCount = 4;
/** Number of flags that are created while a fault lasts. */
const flagsPerFault = 10;

/**
 * Clients of the server SDK behind a gateway, while processes fail. Each change creates an enabled flag, so a client
 * that returned to older flags would have fewer of them than before.
 */
describe("given clients of the server SDK and two edges behind a gateway", () => {
  let system: System;
  let gateway: ServiceProcess;
  let balancer: LoadBalancer;
  let tenant: Tenant;
  let clients: Client[];
  let created = 0;
  /** Decreases in the number of flags of a client. */
  const decreases: string[] = [];

  beforeAll(async () => {
    system = await startSystem({ managements: 1, meterings: 1, edges: 2 });
    gateway = await system.startGateway();
    balancer = await startLoadBalancer(() => [gateway]);
    const [management] = system.managements;
    tenant = await createTenant(management?.url ?? "", { name: "SDK" });
    const options = { baseUrl: balancer.url, serverKey: tenant.serverKey, logger: silent };
    clients = Array.from({ length: clientCount }, () => createClient(options));
    for (const client of clients) watch(client);
    system.endsWithSystem(async () => {
      await Promise.all([...clients.map((client) => client.close()), balancer.close()]);
    });
  });
  afterAll(() => system?.close());

  function watch(client: Client): void {
    let most = 0;
    client.on("change", () => {
      const count = Object.keys(client.allFlags()).length;
      if (count < most) decreases.push(`${most} flags, then ${count}`);
      most = Math.max(most, count);
    });
  }

  async function createFlag(): Promise<void> {
    const key = `flag-${created}`;
    created += 1;
    await must(`${system.managements[0]?.url}/api/v1/flags`, {
      method: "POST",
      key: tenant.serverKey,
      body: { key, name: key, enabled: true },
    });
  }

  /** Creates flags during a fault, and waits until every client has all of them. */
  async function changeDuring(fault: () => Promise<void>): Promise<void> {
    await createFlag();
    const changes = (async () => {
      for (let count = 0; count < flagsPerFault; count += 1) await createFlag();
    })();
    await Promise.all([fault(), changes]);
    await eventually(() => clients.map((client) => Object.values(client.allFlags())), {
      because: "every client has all flags",
      withinMs: 60_000,
      until: (values) =>
        values.every((all) => all.length === created && all.every((value) => value)),
    });
    expect(decreases).toEqual([]);
  }

  it("has the flags of the service, by a stream", async () => {
    expect(await Promise.all(clients.map((client) => client.ready({ timeoutMs: 20_000 })))).toEqual(
      clients.map(() => true),
    );
    await changeDuring(async () => undefined);
    expect(clients.map(({ status }) => status.source)).toEqual(clients.map(() => "stream"));
  });

  describe("with typed flags", () =>
    describeTypedFlags(() => ({ system, tenant, client: clients[0] as Client })));

  describe("with a list of beta users and a required flag", () =>
    describeAudienceStory(() => ({ gatewayUrl: gateway.url })));

  it("loses no change and never goes back while edges are killed and started again", async () => {
    for (const edge of system.edges)
      await changeDuring(async () => {
        await edge.process.kill();
        await edge.start();
      });
  });

  it("loses no change and never goes back while the gateway is replaced", () =>
    changeDuring(async () => {
      await gateway.kill();
      gateway = await system.startGateway();
      await awaitReady({ name: "a gateway", process: gateway });
    }));

  it("loses no change and never goes back while NATS is unavailable", () =>
    changeDuring(async () => {
      await system.nats.kill();
      await system.nats.start();
    }));

  describe("a client behind HAProxy", () => describeHaproxyStory(() => ({ system })));

  it("polls when another client has the plan's only stream", async () => {
    const managementUrl = system.managements[0]?.url ?? "";
    const { serverKey } = await createTenant(managementUrl, { name: "One stream", plan: "free" });
    const options = { baseUrl: balancer.url, serverKey, logger: silent, pollIntervalMs: 1_000 };
    const first = createClient(options);
    system.endsWithSystem(first.close);
    expect(await first.ready({ timeoutMs: 20_000 })).toBe(true);
    expect(first.status.connection).toBe("streaming");

    const second = createClient(options);
    system.endsWithSystem(second.close);
    const errors: string[] = [];
    second.on("error", ({ code }) => errors.push(code));
    expect(await second.ready({ timeoutMs: 20_000 })).toBe(true);
    expect(second.status).toMatchObject({ source: "poll", current: true, connection: "polling" });
    expect(errors).toEqual(["limited"]);

    const body = { key: "new-checkout", name: "Checkout", enabled: true };
    await must(`${managementUrl}/api/v1/flags`, { method: "POST", key: serverKey, body });
    await eventually(() => [first, second].every((client) => client.isEnabled("new-checkout")));
    expect(second.status.connection).toBe("polling");
  });

  it("reports evaluations, which appear in the usage of the flag", async () => {
    const [client] = clients;
    for (let count = 0; count < 7; count += 1) client?.isEnabled("flag-0", { id: "user-1" });
    await client?.close();
    const listed = async () => {
      const url = `${system.managements[0]?.url}/api/v1/flags?key=flag-0`;
      const { flags } = await must(url, { key: tenant.serverKey });
      return flags[0].last_evaluated_at;
    };
    expect(await eventually(listed, { until: (time) => time !== null })).toEqual(
      expect.any(String),
    );
  });

  describe("the examples of the SDKs", () => describeExamples(() => ({ system, gateway })));
});

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
