import { rm } from "node:fs/promises";
import { snapshotBucket } from "@halyard/contracts";
import {
  call,
  type EventStream,
  eventually,
  openEventStream,
  type RestartablePostgres,
  readEpoch,
  stepClock,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  awaitEdgesAgree,
  awaitSettled,
  awaitSnapshot,
  faultsOfSnapshot,
} from "../src/checks/agreement.ts";
import { requestsUsed } from "../src/checks/usage-agreement.ts";
import {
  copyTree,
  hourMs,
  readSchedule,
  scheduleInAnHour,
  takeBaseBackup,
  useFlags,
} from "../src/stories/restore-story.ts";
import { beginTargetingStory } from "../src/stories/targeting-story.ts";
import { beginWebhookStory, type WebhookStory } from "../src/stories/webhook-story.ts";
import { withManager } from "../src/system/disturbances.ts";
import {
  startReadyDispatcher,
  startReadyMetering,
  startReadyScheduler,
  stopInOrder,
} from "../src/system/replicas.ts";
import { awaitReady, type Management, type System, startSystem } from "../src/system/system.ts";
import { must, operatorToken } from "../src/system/tenancy.ts";
import { type CreatedFlag, createFlags } from "../src/traffic/changes.ts";

/** Tests a database that is restored from an older backup while NATS and the edges keep newer data. */
const sdkRequests = 12;

describe.each(["keep running", "are stopped"])(
  "given a restore from an older backup while the services %s, and NATS and the edges keep running",
  (services) => {
    let system: System;
    let postgres: RestartablePostgres;
    let backupDir: string;
    beforeAll(async () => {
      system = await startSystem({
        managements: 2,
        schedulers: 1,
        dispatchers: 1,
        meterings: 1,
        edges: 2,
        postgres: "own",
      });
      postgres = system.postgres as RestartablePostgres;
      backupDir = `${postgres.clusterDir}.backup`;
    });
    afterAll(async () => {
      await system?.close();
      await rm(backupDir, { recursive: true, force: true });
    });

    async function restore(): Promise<void> {
      const stopped = services === "are stopped";
      if (stopped) await stopServices(system);
      await postgres.kill();
      await rm(postgres.clusterDir, { recursive: true });
      await copyTree(backupDir, postgres.clusterDir);
      await postgres.start();
      if (stopped) await startServices(system);
    }

    it("makes every edge, stream, webhook and schedule agree with the restored database", async () => {
      const story = await beginWebhookStory(system, { name: "Restored", flags: 3 });
      const targeting = await beginTargetingStory(system);
      await targeting.awaitServed("created");
      const [changed, kept, deleted] = story.flags as [CreatedFlag, CreatedFlag, CreatedFlag];
      await story.flip({ times: 3, pauseMs: 0 }).ended;
      for (const flag of [kept, deleted]) await scheduleInAnHour(system, story, flag);
      const usedBefore = await useFlags(system, story.tenant, { requests: sdkRequests });
      expect(await story.faults()).toEqual([]);
      const arrivedBefore = story.receiver.requests.length;
      await takeBaseBackup(system.sql, { ...postgres, backupDir }, async () => undefined);

      const laterKey = await changeAfterwards(system, story, { changed, deleted });
      await useFlags(system, story.tenant, { requests: sdkRequests, before: usedBefore });
      await targeting.change();
      await targeting.awaitServed("changed");
      await agree(system, story);
      const streams = await openStreams(system, story.tenant.clientKey);
      const laterStreams = await openStreams(system, laterKey);
      const epoch = await epochOf(system);
      // The restored database does not contain their deliveries.
      await eventually(() => story.receiver.requests.length > arrivedBefore);
      await story.faults();
      story.receiver.requests.splice(arrivedBefore);

      await restore();
      await eventually(async () => ![undefined, epoch].includes(await epochOf(system)), {
        because: "there is a new epoch",
        withinMs: 30_000,
      });
      await agree(system, story);
      for (const { url } of system.edges)
        expect((await call(`${url}/api/v1/sdk/flags`, { key: laterKey })).status).toBe(401);
      await Promise.all(laterStreams.map(({ ended }) => ended));
      await targeting.awaitServed("created");
      await eventually(() => streams.every((stream) => valueIn(stream, changed) === true), {
        because: "open streams have the restored value",
      });

      for (const [index, { url }] of system.managements.entries()) {
        const enabled = index % 2 !== 0;
        await eventually(() => patch(url, story, changed, enabled));
        await agree(system, story);
        await eventually(() => streams.every((stream) => valueIn(stream, changed) === enabled), {
          because: "open streams have the new value",
        });
      }
      for (const stream of streams) stream.close();

      // The scheduler loads the new epoch within two seconds.
      for (const flag of [kept, deleted])
        expect(await eventually(() => readSchedule(system, story, flag))).toMatchObject({
          status: "pending",
        });
      await stepClock(system.sql, "scheduler", 2 * hourMs);
      for (const flag of [kept, deleted])
        await eventually(
          async () => (await readSchedule(system, story, flag)).status === "applied",
          {
            because: "the restored schedule is applied",
            // Half a minute after it was sent, a change without an outcome is sent again. The first message is lost if
            // the queue of due changes is just being replaced.
            withinMs: 60_000,
          },
        );
      expect(await story.faults()).toEqual([]);
      expect(await faultsOfSnapshot(system.sql, system.nats.url)).toEqual([]);
      await agree(system, story);
      await eventually(
        async () => (await requestsUsed(system, story.tenant)) >= usedBefore + sdkRequests,
        { because: "usage has the requests that edges enforce", withinMs: 60_000 },
      );
    }, 240_000);
  },
);

const agree = async (system: System, { tenant }: WebhookStory) => {
  await awaitSettled(system.sql);
  await awaitSnapshot(system.nats.url);
  await awaitEdgesAgree({ ...system, environmentId: tenant.environmentId, key: tenant.clientKey });
};

/** Changes data after the backup. Returns a key that the backup does not contain. */
async function changeAfterwards(
  system: System,
  story: WebhookStory,
  { changed, deleted }: { changed: CreatedFlag; deleted: CreatedFlag },
): Promise<string> {
  const [{ url }] = system.managements as [Management];
  const { tenant } = story;
  for (const enabled of [false, true, false]) await story.switchByHand(changed, enabled);
  await createFlags(url, tenant.serverKey, ["created-later"]);
  await must(`${url}/api/v1/flags/${deleted.id}`, { method: "DELETE", key: tenant.serverKey });
  const issued = await must(
    `${url}/api/v1/projects/${tenant.projectId}/environments/${tenant.environmentId}/keys`,
    {
      method: "POST",
      key: operatorToken,
      body: { kind: "client", name: "later", user_id: tenant.userId },
    },
  );
  return issued.key;
}

async function stopServices(system: System): Promise<void> {
  const { managements, schedulers, dispatchers, meterings } = system;
  const replicas = [managements, schedulers, dispatchers, meterings].flatMap((inService) =>
    inService.splice(0),
  );
  await Promise.all(replicas.map(stopInOrder));
}

async function startServices(system: System): Promise<void> {
  const [one, other] = await Promise.all([
    system.startManagement(),
    system.startManagement(),
    startReadyScheduler(system),
    startReadyDispatcher(system),
    startReadyMetering(system),
  ]);
  for (const process of [one, other]) await awaitReady({ name: "management", process });
}

const openStreams = ({ edges }: System, key: string) =>
  Promise.all(
    edges.map(({ url }) =>
      eventually(async () => {
        const headers = { authorization: `Bearer ${key}` };
        const stream = await openEventStream(`${url}/api/v1/sdk/stream`, headers);
        return stream.status === 200 && stream;
      }),
    ),
  );

/** Returns the latest value of a flag that a stream has sent. */
function valueIn({ events }: EventStream, flag: CreatedFlag): unknown {
  return events
    .map(({ data }) => (data as { flags?: Record<string, unknown> }).flags?.[flag.key])
    .findLast((value) => value !== undefined);
}

/** Returns the epoch, or undefined while there is no complete snapshot. */
const epochOf = ({ nats }: System) =>
  withManager(nats.url, async (manager) => {
    const { streams } = manager;
    const info = await streams.info(snapshotBucket.streamName).catch(() => undefined);
    return info === undefined ? undefined : readEpoch(manager);
  });

async function patch(url: string, { tenant }: WebhookStory, flag: CreatedFlag, enabled: boolean) {
  const change = { method: "PATCH", key: tenant.serverKey, body: { enabled } };
  return (await call(`${url}/api/v1/flags/${flag.id}`, change)).status === 200;
}
