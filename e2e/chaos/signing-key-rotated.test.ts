import { type KeyObject, randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { createEntrySigner, idIn, makeApiKey } from "@halyard/api-keys";
import { call, eventually, payloadOf, privateKeyOf, signingSettings } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Forger, type KeyAddress, openForger, parseKeyEntry } from "../src/checks/forger.ts";
import { replaceEach, stopInOrder } from "../src/system/replicas.ts";
import { type Replica, type System, startSystem } from "../src/system/system.ts";
import { createTenant, type Tenant } from "../src/system/tenancy.ts";

/** Follows "Rotation" and "After a leak of the signing key" in docs/security.md. */
const leaked = privateKeyOf("k");
const replacement = privateKeyOf("n");
const leakedSigner = createEntrySigner(leaked);
const betweenRequestsMs = 10;

/** The variables of each service. Processes read them when they start. */
const variables = {
  management: {} as Record<string, string>,
  scheduler: {} as Record<string, string>,
  "webhook-dispatcher": {} as Record<string, string>,
  "usage-metering": {} as Record<string, string>,
  "sdk-edge": {} as Record<string, string>,
};

function setPublicKeys(keys: readonly KeyObject[]): void {
  const list = keys.map((key) => signingSettings(key).readers.SIGNING_PUBLIC_KEYS).join(",");
  for (const service of Object.values(variables)) service.SIGNING_PUBLIC_KEYS = list;
}

function setPrivateKey(key: KeyObject): void {
  Object.assign(variables.management, signingSettings(key).management);
}

describe("given a signing key that has leaked to a client with write access to NATS", () => {
  let system: System;
  let forger: Forger;
  let tenant: Tenant;
  let polls: ReturnType<typeof pollEdges>;

  beforeAll(async () => {
    setPublicKeys([leaked]);
    setPrivateKey(leaked);
    system = await startSystem({
      ...{ managements: 2, schedulers: 1, dispatchers: 1, meterings: 1, edges: 2 },
      settings: () => variables,
    });
    const [management] = system.managements as [Replica];
    tenant = await createTenant(management.url, { name: "Rotating" });
    forger = await openForger(system.nats.url);
    await eventually(async () => (await acceptedBy(tenant.serverKey)).length === 5);
    polls = pollEdges(system, tenant.serverKey);
  });
  afterAll(async () => {
    await polls?.stop();
    await forger?.close();
    await system?.close();
  });

  /** Returns the names of the services that accept a key. */
  async function acceptedBy(key: string): Promise<string[]> {
    const readers = [
      ["management", system.managements[0]?.url, "/api/v1/flags"],
      ["scheduler", system.schedulers[0]?.url, "/api/v1/schedules"],
      ["dispatcher", system.dispatchers[0]?.url, `/api/v1/projects/${tenant.projectId}/webhooks`],
      ["metering", system.meterings[0]?.url, "/api/v1/usage"],
      ["edge", system.edges[0]?.url, "/api/v1/sdk/flags"],
    ];
    const statuses = await Promise.all(
      readers.map(async ([, url, path]) => (await call(`${url}${path}`, { key })).status),
    );
    return readers.flatMap(([name = ""], index) => (statuses[index] === 200 ? [name] : []));
  }

  async function restartEverything(): Promise<void> {
    await replaceEach(system.managements, system.startManagement);
    await replaceEach(system.schedulers, system.startScheduler);
    await replaceEach(system.dispatchers, system.startDispatcher);
    await replaceEach(system.meterings, system.startMetering);
    for (const edge of system.edges) {
      await stopInOrder(edge.process);
      await edge.start();
    }
  }

  /** Stores the entry of a new key, signed with the leaked key, and returns the new key. */
  async function forge(): Promise<string> {
    const made = makeApiKey("server", randomBytes);
    const { organizationId } = tenant;
    const own: KeyAddress = { kind: "key", organizationId, keyId: idIn(tenant.serverKey) };
    const address: KeyAddress = { ...own, keyId: made.id };
    const genuine = parseKeyEntry((await forger.payloadAt(own)) ?? "");
    const value = { ...genuine, key_id: made.id, secret_sha256: made.secretSha256 };
    await forger.store("publish", address, await payloadOf({ address, value }, leakedSigner));
    return made.key;
  }

  const rejectsEverywhere = (key: string) =>
    eventually(async () => (await acceptedBy(key)).length === 0, { withinMs: 30_000 });

  it("accepts a forged key before the rotation, until management rebuilds the snapshot", async () => {
    for (const management of system.managements) management.signal("SIGSTOP");
    const [edge] = system.edges;
    try {
      const forged = await forge();
      const flags = `${edge?.url}/api/v1/sdk/flags`;
      await eventually(async () => (await call(flags, { key: forged })).status === 200);
      for (const management of system.managements) management.signal("SIGCONT");
      await rejectsEverywhere(forged);
    } finally {
      for (const management of system.managements) management.signal("SIGCONT");
    }
    await eventually(async () => (await acceptedBy(tenant.serverKey)).length === 5);
  });

  it("rotates without rejecting a valid key, and accepts no forged key afterwards", async () => {
    setPublicKeys([leaked, replacement]);
    await restartEverything();
    setPrivateKey(replacement);
    await replaceEach(system.managements, system.startManagement);
    await eventually(
      () => system.managements.some(({ log }) => log().includes("the snapshot is complete")),
      { because: "the next leader signs the snapshot again", withinMs: 30_000 },
    );
    await eventually(async () => (await followersBehind(system)).length === 0);
    setPublicKeys([replacement]);
    await restartEverything();

    expect(await acceptedBy(tenant.serverKey)).toHaveLength(5);
    const epoch = await forger.epoch();
    const forged = await forge();
    const accepted = new Set<string>();
    await eventually(
      async () => {
        for (const name of await acceptedBy(forged)) accepted.add(name);
        return ![undefined, epoch].includes(await forger.epoch());
      },
      { because: "management rebuilds the snapshot", withinMs: 30_000 },
    );
    expect([...accepted]).toEqual([]);
    expect(await acceptedBy(tenant.serverKey)).toHaveLength(5);
    expect(await polls.stop()).toEqual([]);
  });
});

/** Returns the processes with a follower that is not current. */
async function followersBehind(system: System): Promise<string[]> {
  const { managements, schedulers, dispatchers, meterings, edges } = system;
  const processes = [managements, schedulers, dispatchers, meterings].flat();
  const urls = [...processes, ...edges.map(({ process }) => process)].map(
    ({ metricsUrl }) => metricsUrl,
  );
  const current = await Promise.all(
    urls.map(async (url) => {
      const text = await (await fetch(`${url}/metrics`)).text();
      return !/^halyard_follower_current\{.*\} 0$/m.test(text);
    }),
  );
  return urls.filter((_, index) => !current[index]);
}

/** Sends requests to all edges. `stop` returns the unexpected responses. */
function pollEdges({ edges }: System, key: string) {
  const unexpected: string[] = [];
  let isOver = false;
  const polling = (async () => {
    while (!isOver) {
      for (const { name, url } of edges) {
        // A load balancer sends no requests to an edge that rejects connections or is not ready (503).
        const answer = await call(`${url}/api/v1/sdk/flags`, { key }).catch(() => undefined);
        if (answer !== undefined && ![200, 503].includes(answer.status))
          unexpected.push(`${name}: ${answer.status} ${JSON.stringify(answer.body)}`);
      }
      await delay(betweenRequestsMs);
    }
  })();
  return {
    async stop() {
      isOver = true;
      await polling;
      return unexpected;
    },
  };
}
