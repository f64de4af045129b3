import { spawnSync } from "node:child_process";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  eventually,
  type RestartablePostgres,
  type ServiceProcess,
  stepClock,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { awaitEdgesAgree, faultsOfAnswers, faultsOfSnapshot } from "../src/checks/agreement.ts";
import {
  copyTree,
  hourMs,
  readSchedule,
  scheduleInAnHour,
  takeBaseBackup,
  useFlags,
} from "../src/stories/restore-story.ts";
import { beginWebhookStory, type WebhookStory } from "../src/stories/webhook-story.ts";
import { awaitAnswers } from "../src/system/disturbances.ts";
import {
  startReadyDispatcher,
  startReadyMetering,
  startReadyScheduler,
  stopInOrder,
} from "../src/system/replicas.ts";
import { awaitReady, type Management, type System, startSystem } from "../src/system/system.ts";
import { createTenant, must } from "../src/system/tenancy.ts";
import { type CreatedFlag, createFlags, streamChanges } from "../src/traffic/changes.ts";

/**
 * Follows backup and restore in `docs/deployment.md`, with an online base backup of the server's files, because npm
 * provides no pg_dump. deploy/docker/test/walk.system.test.ts runs the commands of the page with pg_dump.
 */

const sdkRequests = 12;
const changesDuringBackup = 10;
const verifyHistoryProgram = fileURLToPath(
  new URL("../../services/management/src/verify-history.ts", import.meta.url),
);

describe("given a backup of PostgreSQL and the loss of everything else", () => {
  let system: System;
  let postgres: RestartablePostgres;
  let backupDir: string;
  beforeAll(async () => {
    system = await startSystem({
      managements: 1,
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

  async function loseEverything(): Promise<void> {
    const { managements, schedulers, dispatchers, meterings, edges, nats } = system;
    const replicas = [managements, schedulers, dispatchers, meterings].flatMap((inService) =>
      inService.splice(0),
    );
    await Promise.all([...replicas, ...edges.map(({ process }) => process)].map(stopInOrder));
    await Promise.all([postgres.kill(), nats.kill()]);
    await rm(postgres.clusterDir, { recursive: true });
    for (const name of await readdir(nats.storeDir))
      await rm(join(nats.storeDir, name), { recursive: true });
    for (const { cacheFile } of edges) await rm(cacheFile);
  }

  async function restore(): Promise<void> {
    await copyTree(backupDir, postgres.clusterDir);
    await Promise.all([postgres.start(), system.nats.start()]);
  }

  async function startServices(): Promise<void> {
    const [management] = await Promise.all([
      system.startManagement(),
      startReadyScheduler(system),
      startReadyDispatcher(system),
      startReadyMetering(system),
      ...system.edges.map((edge) => edge.start()),
    ]);
    await awaitReady({ name: "management", process: management });
  }

  it("restores everything in the backup, and continues from there", async () => {
    const story = await beginWebhookStory(system, { name: "At rest", flags: 4 });
    await story.flip({ times: 3, pauseMs: 0 }).ended;
    expect(await story.faults()).toEqual([]);
    await scheduleInAnHour(system, story);
    await useFlags(system, story.tenant, { requests: sdkRequests });
    const before = await readState(system, story);

    const [{ url }] = system.managements as [Management];
    const busy = await createTenant(url, { name: "Changing" });
    const changes = streamChanges({
      managementUrls: () => [url],
      serverKey: busy.serverKey,
      ladder: [],
      flipped: await createFlags(url, busy.serverKey, ["one", "two"]),
      pauseMs: 10,
    });
    system.endsWithSystem(changes.stop);
    const kept = await takeBaseBackup(system.sql, { ...postgres, backupDir }, async () => {
      await awaitAnswers(changes, changesDuringBackup);
      return { acknowledged: [...changes.acknowledged], deleted: [...changes.deleted] };
    });
    await createFlags(url, busy.serverKey, ["too-late"]);
    await changes.stop();

    await loseEverything();
    await restore();
    await startServices();

    expect(await readState(system, story)).toEqual(before);
    await stepClock(system.sql, "scheduler", 2 * hourMs);
    await eventually(async () => (await readSchedule(system, story)).status === "applied", {
      because: "the restored schedule is applied",
    });
    await story.switchByHand(story.flags[1] as CreatedFlag, false);
    expect(await story.faults()).toEqual([]);
    expect(await system.sql`select from flags where key = 'too-late'`).toHaveLength(0);
    for (const { environmentId, clientKey: key } of [story.tenant, busy])
      await awaitEdgesAgree({ ...system, environmentId, key });
    expect([
      ...(await faultsOfSnapshot(system.sql, system.nats.url)),
      ...(await faultsOfAnswers(system.nats.url, kept.acknowledged, kept.deleted)),
    ]).toEqual([]);
    expect(verifyHistory(postgres.adminUrl)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining("The history is intact"),
    });
  });
});

/** Returns everything in a project that the services return to its server key. */
async function readState(system: System, story: WebhookStory) {
  const { tenant, webhookId } = story;
  const { projectId, environmentId, serverKey: key } = tenant;
  const [[management], [dispatcher], [metering]] = [
    system.managements,
    system.dispatchers,
    system.meterings,
  ];
  const read = (service: ServiceProcess | undefined, path: string) =>
    must(`${service?.url}/api/v1${path}`, { key });
  const webhook = `/projects/${projectId}/webhooks/${webhookId}`;
  return {
    flags: await read(management, "/flags"),
    histories: await Promise.all(
      story.flags.map(({ id }) =>
        read(management, `/flags/${id}/environments/${environmentId}/history`),
      ),
    ),
    changes: await read(management, `/projects/${projectId}/changes`),
    schedule: await readSchedule(system, story),
    webhook: await read(dispatcher, webhook),
    deliveries: await read(dispatcher, `${webhook}/deliveries`),
    usage: await read(metering, "/usage"),
  };
}

function verifyHistory(url: string) {
  return spawnSync(process.execPath, [verifyHistoryProgram], {
    env: { PATH: process.env.PATH, POSTGRES_URL: url },
    encoding: "utf8",
  });
}
