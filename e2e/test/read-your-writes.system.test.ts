import { snapshotBucket } from "@halyard/contracts";
import { call, eventually, isThorough, readEpoch } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { awaitSettled } from "../src/checks/agreement.ts";
import { deleteStream } from "../src/system/disturbances.ts";
import {
  awaitLeader,
  type Edge,
  type Management,
  type System,
  startSystem,
} from "../src/system/system.ts";
import { createTenant, must, operatorToken, type Tenant } from "../src/system/tenancy.ts";
import {
  awaitedWrite,
  createFlag,
  deleteFlag,
  incompleteWaits,
  readMetric,
  servedFlags,
} from "../src/traffic/awaited-writes.ts";

/** Number of writes of each kind, each checked right after its response, and of edges that join. */
const manyWrites = isThorough ? 100 : 30;
const manyJoins = isThorough ? 3 : 1;

/** Fewer than the concurrent writes of a test that wait. */
const databaseConnections = 4;

/**
 * Writes wait until they are in effect on all live edges. On a busy machine, a wait may time out, and management counts
 * the responses after such a wait. A test therefore checks only the other responses, and sends writes until there were
 * enough of them.
 */
describe("given two managements, where the one without the relay receives the writes", () => {
  let system: System;
  let tenant: Tenant;
  let management: Management;
  let edges: readonly [Edge, Edge];
  let counter = 0;
  const nextKey = () => `flag-${++counter}`;

  beforeAll(async () => {
    system = await startSystem({
      managements: 2,
      edges: 2,
      settings: () => ({
        management: { POSTGRES_MAX_CONNECTIONS: String(databaseConnections) },
      }),
    });
    const leader = await awaitLeader(system.managements);
    management = system.managements.find((each) => each !== leader) as Management;
    edges = [system.edges[0] as Edge, system.edges[1] as Edge];
    tenant = await createTenant(management.url, { name: "Acme" });
    await eventually(async () => (await liveEdges()) === 2);
  });
  afterAll(() => system?.close());

  const liveEdges = () => readMetric(management, "halyard_live_edges");

  /**
   * Repeats a write that returns the faults observed right after its response. Returns the faults after complete
   * writes, once there were enough of them.
   */
  async function faultsOf(
    writeAndObserve: () => Promise<readonly string[]>,
    completeWrites: number,
  ): Promise<readonly string[]> {
    const faults: string[] = [];
    let complete = 0;
    await eventually(
      async () => {
        const { result, isComplete } = await awaitedWrite(management, writeAndObserve);
        if (!isComplete) return false;
        complete += 1;
        faults.push(...result);
        return complete === completeWrites;
      },
      { withinMs: 60_000, because: `${completeWrites} writes are complete` },
    );
    return faults;
  }

  /** Creates a flag. Returns the edges that serve without it right after the response. */
  async function createAndObserve(observed: readonly Edge[]): Promise<readonly string[]> {
    const key = nextKey();
    await createFlag(management, tenant, key);
    const served = await Promise.all(
      observed.map((edge) => servedFlags(edge, tenant).catch(() => undefined)),
    );
    return observed
      .filter((_, index) => served[index]?.includes(key) === false)
      .map(({ name }) => `${name} lacks ${key}`);
  }

  it("serves a created flag on every edge from the response on", async () => {
    expect(await faultsOf(() => createAndObserve(edges), manyWrites)).toEqual([]);
  });

  it("serves a deleted flag on no edge from the response on", async () => {
    const flags = await Promise.all(
      Array.from({ length: 2 * manyWrites }, () => createFlag(management, tenant, nextKey())),
    );
    const deleteAndObserve = async () => {
      const { id, key } = flags.pop() ?? (await createFlag(management, tenant, nextKey()));
      await deleteFlag(management, tenant, id);
      const served = await Promise.all(edges.map((edge) => servedFlags(edge, tenant)));
      return served.some((keys) => keys?.includes(key)) ? [`${key} is still served`] : [];
    };
    expect(await faultsOf(deleteAndObserve, manyWrites)).toEqual([]);
  });

  it("accepts a new key on every edge, and rejects a revoked one", async () => {
    const keysUrl = `${management.url}/api/v1/projects/${tenant.projectId}/environments/${tenant.environmentId}/keys`;
    const statuses = (key: string) =>
      Promise.all(
        edges.map(async ({ url }) => (await call(`${url}/api/v1/sdk/flags`, { key })).status),
      );
    const issueAndRevoke = async () => {
      const { id, key } = await must(keysUrl, {
        method: "POST",
        key: operatorToken,
        body: { kind: "client", name: "new", user_id: tenant.userId },
      });
      const issued = await statuses(key);
      await must(`${keysUrl}/${id}`, { method: "DELETE", key: operatorToken });
      const revoked = await statuses(key);
      const all = [...issued, ...revoked].join(" ");
      return all === "200 200 401 401" ? [] : [all];
    };
    expect(await faultsOf(issueAndRevoke, 20)).toEqual([]);
  });

  it("waits for an edge that is suspended for a moment, without holding a database connection", async () => {
    const [running, stopped] = edges;
    const writeWhileStopped = async () => {
      const keys = Array.from({ length: 3 * databaseConnections }, nextKey);
      let answers = 0;
      stopped.process.signal("SIGSTOP");
      const writes = keys.map(async (key) => {
        await createFlag(management, tenant, key);
        answers += 1;
      });
      // All writes have committed, so none needs a connection any more.
      await eventually(async () => {
        const served = await servedFlags(running, tenant);
        return keys.every((key) => served?.includes(key));
      });
      await awaitSettled(system.sql);
      await call(`${management.url}/api/v1/flags`, { key: tenant.serverKey });
      const answersWhileStopped = answers;
      stopped.process.signal("SIGCONT");
      await Promise.all(writes);
      const served = await servedFlags(stopped, tenant);
      const faults = keys.filter((key) => served?.includes(key) === false);
      return answersWhileStopped === 0 ? faults : [`${answersWhileStopped} answers`, ...faults];
    };
    expect(await faultsOf(writeWhileStopped, 1)).toEqual([]);
  });

  it("does not wait for an edge that stays suspended, and waits for it again once it is current", async () => {
    const [running, stopped] = edges;
    stopped.process.signal("SIGSTOP");
    const missed = nextKey();
    await createFlag(management, tenant, missed);
    await eventually(async () => (await liveEdges()) === 1);
    expect(await faultsOf(() => createAndObserve([running]), 5)).toEqual([]);

    stopped.process.signal("SIGCONT");
    await eventually(async () => (await liveEdges()) === 2);
    expect(await servedFlags(stopped, tenant)).toContain(missed);
    expect(await faultsOf(() => createAndObserve(edges), 5)).toEqual([]);
  });

  it("serves every write from an edge that joins in the meantime, and does not wait for one that left", async () => {
    const [, joining] = edges;
    for (let joins = 0; joins < manyJoins; joins += 1) {
      expect(await joining.process.stop()).toBe(0);
      await eventually(async () => (await liveEdges()) === 1);
      const starting = joining.start();
      expect(await faultsOf(() => createAndObserve(edges), 30)).toEqual([]);
      await starting;
      await eventually(async () => (await liveEdges()) === 2);
      expect(await faultsOf(() => createAndObserve(edges), 1)).toEqual([]);
    }
  });

  it("never takes a revision of the previous epoch for one of the new epoch", async () => {
    const connection = await connect({ servers: system.nats.url });
    const manager = await jetstreamManager(connection);
    const before = await readEpoch(manager);
    await deleteStream(system.nats.url, snapshotBucket.streamName);
    const faults: string[] = [];
    await eventually(async () => {
      const { result, isComplete } = await awaitedWrite(management, () => createAndObserve(edges));
      if (isComplete) faults.push(...result);
      const epoch = await readEpoch(manager).catch(() => undefined);
      return epoch !== undefined && epoch !== before;
    });
    faults.push(...(await faultsOf(() => createAndObserve(edges), 10)));
    expect(faults).toEqual([]);
    await connection.close();
  });

  it("does not wait while NATS is disconnected", async () => {
    await system.nats.kill();
    await eventually(async () => {
      await createFlag(management, tenant, nextKey());
      return (await readMetric(management, incompleteWaits, 'step="disconnected"')) > 0;
    });
    await system.nats.start();
    await eventually(async () => (await liveEdges()) === 2);
    expect(await faultsOf(() => createAndObserve(edges), 5)).toEqual([]);
  });
});
