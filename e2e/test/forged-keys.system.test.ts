import { randomBytes, randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { idIn, makeApiKey } from "@halyard/api-keys";
import { call, eventually, someOf, startReceiver } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  type Forger,
  type KeyAddress,
  openForger,
  parseKeyEntry,
  type Way,
  ways,
} from "../src/checks/forger.ts";
import { createWebhook } from "../src/stories/webhook-story.ts";
import { awaitLeader, type Replica, type System, startSystem } from "../src/system/system.ts";
import { createTenant, must, operatorToken, type Tenant } from "../src/system/tenancy.ts";

/**
 * Tests a client that can write to all of NATS. It must not obtain a working API key on any service that reads keys,
 * and working keys must keep working. Management restores the entries that such a client replaces.
 */
const otherProject = "0192f0c1-0000-7000-8000-000000000001";
const deletion = JSON.stringify({
  deleted: true,
  version: 9,
  committed_at: "2027-01-01T00:00:00.000Z",
});
/** The ways that store the payload itself. The others store an API response, or an entry under another subject. */
const storesEntries: ReadonlySet<string> = new Set(["publish", "direct get"]);
/** Pause between requests. Without it, the requests would slow down the rebuild of the snapshot. */
const betweenRequestsMs = 5;
type Reader = Pick<Replica, "url" | "metricsUrl" | "log"> & { name: string; path: string };

describe("given a NATS client that can write to the snapshot", () => {
  let system: System;
  let forger: Forger;
  let tenant: Tenant;
  let readers: Reader[];

  beforeAll(async () => {
    system = await startSystem({
      ...{ managements: 1, schedulers: 1, dispatchers: 1, meterings: 1, edges: 1 },
    });
    const management = await awaitLeader(system.managements);
    tenant = await createTenant(management.url, { name: "Victim" });
    forger = await openForger(system.nats.url);
    const [scheduler] = system.schedulers as [Replica];
    const [dispatcher] = system.dispatchers as [Replica];
    const [metering] = system.meterings as [Replica];
    const edge = system.edges[0]?.process;
    readers = [
      { name: "management", ...addressOf(management), path: "/api/v1/flags" },
      { name: "scheduler", ...addressOf(scheduler), path: "/api/v1/schedules" },
      {
        name: "webhook-dispatcher",
        ...addressOf(dispatcher),
        path: `/api/v1/projects/${tenant.projectId}/webhooks`,
      },
      { name: "usage-metering", ...addressOf(metering), path: "/api/v1/usage" },
      { name: "sdk-edge", ...addressOf(edge as Replica), path: "/api/v1/sdk/flags" },
    ];
    await eventually(async () => (await acceptedBy(tenant.serverKey)).length === readers.length);
  });
  afterAll(async () => {
    await forger?.close();
    await system?.close();
  });

  const addressOf = ({ url, metricsUrl, log }: Replica) => ({ url, metricsUrl, log });

  /** Sends a request with the key to every reader. */
  async function answersTo(key: string): Promise<{ name: string; status: number }[]> {
    return Promise.all(
      readers.map(async ({ name, url, path }) => {
        const { status } = await call(url + path, { key });
        return { name, status };
      }),
    );
  }

  /** Returns the names of the readers that accept a key. */
  async function acceptedBy(key: string): Promise<string[]> {
    const answers = await answersTo(key);
    return answers.filter(({ status }) => status === 200).map(({ name }) => name);
  }

  const everywhere = () => readers.map(({ name }) => name);

  async function issue(fields: Record<string, unknown> = {}) {
    const { projectId, environmentId, userId } = tenant;
    const issued = await must(
      `${readers[0]?.url}/api/v1/projects/${projectId}/environments/${environmentId}/keys`,
      {
        method: "POST",
        key: operatorToken,
        body: { kind: "server", name: "A key", user_id: userId, ...fields },
      },
    );
    const address: KeyAddress = {
      kind: "key",
      organizationId: tenant.organizationId,
      keyId: issued.id,
    };
    await eventually(async () => (await acceptedBy(issued.key)).length > 0);
    const payload = await eventually(() => forger.payloadAt(address));
    return { key: issued.key as string, address, payload };
  }

  async function revoke({ address }: { address: KeyAddress }): Promise<void> {
    const { projectId, environmentId } = tenant;
    const keys = `/api/v1/projects/${projectId}/environments/${environmentId}/keys`;
    await must(`${readers[0]?.url}${keys}/${address.keyId}`, {
      method: "DELETE",
      key: operatorToken,
    });
  }

  /** Returns the number of rejected entries so far, for each reader. */
  async function rejected(): Promise<number[]> {
    return Promise.all(
      readers.map(async ({ metricsUrl }) => {
        const text = await (await fetch(`${metricsUrl}/metrics`)).text();
        const [, count] = /^halyard_snapshot_signatures_rejected_total\S* (\d+)$/m.exec(text) ?? [];
        return Number(count);
      }),
    );
  }

  /** Returns whether every reader has read the snapshot, and follows its changes. */
  async function everyReaderFollows(): Promise<boolean> {
    const texts = await Promise.all(
      readers.map(async ({ metricsUrl }) => (await fetch(`${metricsUrl}/metrics`)).text()),
    );
    const isBehind = /^halyard_follower_current\{.*stream="KV_SNAPSHOT_2".*\} 0$/m;
    return texts.every((text) => !isBehind.test(text));
  }

  /** Runs the work. Returns the readers that accepted a key in the meantime, and those that rejected it. */
  async function observe(key: string, work: () => Promise<void>) {
    const [accepted, rejected] = [new Set<string>(), new Set<string>()];
    let isOver = false;
    const asking = (async () => {
      do {
        for (const { name, status } of await answersTo(key)) {
          if (status === 200) accepted.add(name);
          // Edges return 429 to an address with many invalid keys.
          if (status === 401 || status === 429) rejected.add(name);
        }
        await delay(betweenRequestsMs);
      } while (!isOver);
    })();
    try {
      await work();
    } finally {
      isOver = true;
      await asking;
    }
    return { accepted: [...accepted], rejected: [...rejected] };
  }

  /** Stores a payload as the client, and waits until management has rebuilt the snapshot. */
  async function storeUntilRestored(
    way: Way,
    address: KeyAddress,
    payload: string,
    whenStored: () => Promise<unknown> = async () => undefined,
  ): Promise<void> {
    const epoch = await forger.epoch();
    await forger.store(way, address, payload);
    await whenStored();
    const next = await eventually(async () => {
      const now = await forger.epoch();
      return now === epoch ? undefined : now;
    });
    // The readers log the epoch of the snapshot that they have loaded.
    await eventually(() => readers.every(({ log }) => log().includes(next)));
  }

  it.each(someOf(ways, 2))("obtains no key by an entry that it stores by %s", async (way) => {
    const { address, payload } = await issue();
    const made = makeApiKey("server", randomBytes);
    const forged = {
      ...parseKeyEntry(payload),
      key_id: made.id,
      secret_sha256: made.secretSha256,
    };
    const before = await rejected();
    const { accepted } = await observe(made.key, async () => {
      const target = { ...address, keyId: made.id };
      await storeUntilRestored(way, target, JSON.stringify(forged), async () => {
        if (!storesEntries.has(way)) return;
        await eventually(async () =>
          (await rejected()).every((count, index) => count > (before[index] ?? 0)),
        );
      });
    });
    expect(accepted).toEqual([]);
    expect(await acceptedBy(tenant.serverKey)).toEqual(everywhere());
  });

  type Forgery = [what: string, forge: (payload: string, other: string) => string];
  const forgeries: Forgery[] = [
    ["another secret", edited({ secret_sha256: "0".repeat(64), version: 2 })],
    ["a deletion", () => deletion],
    ["an invalid entry", () => "nothing"],
    ["another kind of key", edited({ key_kind: "client", version: 2 })],
    ["another project", edited({ project_id: otherProject, version: 2 })],
    ["a later expiry", edited({ expires_at: "2099-01-01T00:00:00.000Z", version: 2 })],
    ["the entry of another key", (_, other) => other],
  ];

  it.each(someOf(forgeries, 2))(
    "does not stop a key by storing %s, and management restores the entry",
    async (_what, forge) => {
      const victim = await issue();
      const other = await issue();
      await eventually(async () => (await acceptedBy(victim.key)).length === readers.length);
      const forged = forge(victim.payload, other.payload);
      const { rejected } = await observe(victim.key, () =>
        storeUntilRestored("publish", victim.address, forged),
      );
      expect(rejected).toEqual([]);
      expect(await forger.payloadAt(victim.address)).toBe(victim.payload);
    },
  );

  const earlierEntries: [what: string, forge: (payload: string) => string][] = [
    ["its previous entry", (payload) => payload],
    ["that entry with a newer version", edited({ version: 9 })],
  ];

  it.each(someOf(earlierEntries, 1))(
    "does not restore a revoked key by storing %s",
    async (_what, forge) => {
      const revoked = await issue();
      await revoke(revoked);
      await eventually(async () => (await acceptedBy(revoked.key)).length === 0);
      // A service that reads the whole snapshot after the revocation accepts the older entry until the rebuild.
      await eventually(everyReaderFollows);
      const { accepted } = await observe(revoked.key, () =>
        storeUntilRestored("publish", revoked.address, forge(revoked.payload)),
      );
      expect(accepted).toEqual([]);
      expect(await forger.payloadAt(revoked.address)).toBeUndefined();
    },
  );

  const completions: [what: string, complete: () => string][] = [
    ["another epoch", () => JSON.stringify({ epoch: randomUUID(), from: 1 })],
    [
      "another epoch without entries",
      () => JSON.stringify({ epoch: randomUUID(), from: Number.MAX_SAFE_INTEGER }),
    ],
    ["a response of NATS", () => '{"type":"io.nats.jetstream.api.v1.stream_info_response"}'],
  ];

  it.each(someOf(completions, 1))(
    "neither stops a key nor restores a revoked one by %s",
    async (_what, complete) => {
      const [victim, revoked] = [await issue(), await issue()];
      await eventually(async () => (await acceptedBy(victim.key)).length === readers.length);
      await revoke(revoked);
      await eventually(async () => (await acceptedBy(revoked.key)).length === 0);
      const store = () =>
        storeUntilRestored("publish", revoked.address, revoked.payload, () =>
          forger.storeComplete(complete()),
        );
      const [ofVictim, ofRevoked] = await Promise.all([
        observe(victim.key, store),
        observe(revoked.key, async () => {
          await eventually(async () => (await forger.payloadAt(revoked.address)) !== undefined);
          await eventually(async () => (await forger.payloadAt(revoked.address)) === undefined);
        }),
      ]);
      expect(ofVictim.rejected).toEqual([]);
      expect(ofRevoked.accepted).toEqual([]);
    },
  );

  it("does not extend a key that expires", async () => {
    const expiring = await issue({ expires_at: new Date(Date.now() + 6_000).toISOString() });
    const later = edited({ expires_at: null, version: 2 })(expiring.payload);
    await storeUntilRestored("publish", expiring.address, later);
    await eventually(async () => (await acceptedBy(expiring.key)).length === 0);
    expect(await acceptedBy(expiring.key)).toEqual([]);
  });

  it("reaches no webhook and switches no flag by the messages that it publishes", async () => {
    const [management] = system.managements as [Replica];
    const [dispatcher] = system.dispatchers as [Replica];
    const receiver = await startReceiver();
    const url = `${receiver.url}/hooks`;
    const hook = { name: "Hook", url, events: ["flag.deleted", "flag.toggled"], secret: "known" };
    await createWebhook(dispatcher.url, tenant, hook);
    const flags = `${management.url}/api/v1/flags`;
    const key = tenant.serverKey;
    const flag = await must(flags, {
      method: "POST",
      key,
      body: { key: "forged", name: "Forged" },
    });
    const state = { enabled: true, rollout_percentage: 0, targeting_rules: [] };
    const [id, timestamp] = [randomUUID(), new Date().toISOString()];
    const { organizationId, projectId, environmentId, userId } = tenant;
    await forger.publish("flag.deleted", {
      ...{ id, event: "flag.deleted", timestamp, version: 9, cause: "manual" },
      ...{ organization_id: organizationId, project_id: projectId },
      flag: { id: flag.id, key: "forged", name: "Forged", description: "", type: "release" },
      environment: { id: environmentId, name: "production" },
      ...{ state, state_before: state, triggered_by: { id: userId, email: "ada@example.com" } },
    });
    await forger.publish("schedule.due", {
      ...{ id, schedule_id: id, organization_id: organizationId, project_id: projectId },
      ...{ flag_id: flag.id, environment_id: environmentId, user_id: userId },
      ...{ action: "enable", due_at: timestamp },
    });
    const forged = /^halyard_queue_messages_processed_total\{[^}]*"forged"[^}]*\} 1$/m;
    for (const { metricsUrl } of [management, dispatcher])
      await eventually(async () =>
        forged.test(await (await fetch(`${metricsUrl}/metrics`)).text()),
      );
    expect(await must(`${flags}/${flag.id}`, { key })).toMatchObject({ enabled: false });
    await must(`${flags}/${flag.id}`, { method: "PATCH", key, body: { enabled: true } });
    await eventually(() => receiver.requests.length > 0);
    const payloads = receiver.requests.map(({ raw }) => JSON.parse(raw.toString()));
    expect(payloads).toMatchObject([{ event: "flag.toggled" }]);
    await receiver.close();
  });

  it("obtains no key from services that start while management cannot restore the snapshot", async () => {
    const [management] = system.managements as [Replica];
    const victim = await issue();
    const made = makeApiKey("server", randomBytes);
    const forged = { ...parseKeyEntry(victim.payload), secret_sha256: made.secretSha256 };
    const stolen = made.key.replace(made.id, idIn(victim.key));
    management.signal("SIGSTOP");
    try {
      await forger.store("publish", victim.address, JSON.stringify({ ...forged, version: 9 }));
      await forger.store(
        "direct get",
        { ...victim.address, keyId: made.id },
        JSON.stringify({ ...forged, key_id: made.id }),
      );
      const [edge] = system.edges;
      if (edge === undefined) throw new Error("no edge");
      await edge.process.kill();
      rmSync(edge.cacheFile, { force: true });
      await edge.start();
      const flags = `${edge.url}/api/v1/sdk/flags`;
      for (const key of [made.key, stolen])
        expect(await call(flags, { key })).toMatchObject({ status: 401 });
      expect(await call(flags, { key: tenant.serverKey })).toMatchObject({ status: 200 });
    } finally {
      management.signal("SIGCONT");
    }
    await eventually(async () => {
      const [edge] = system.edges;
      return (await call(`${edge?.url}/api/v1/sdk/flags`, { key: victim.key })).status === 200;
    });
  });
});

function edited(fields: Record<string, unknown>): (payload: string) => string {
  return (payload) => JSON.stringify({ ...JSON.parse(payload), ...fields });
}
