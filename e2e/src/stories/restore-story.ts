import { execFile } from "node:child_process";
import { chown, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type postgres from "postgres";
import { awaitCounted } from "../checks/usage-agreement.ts";
import type { System } from "../system/system.ts";
import { must, type Tenant } from "../system/tenancy.ts";
import type { CreatedFlag } from "../traffic/changes.ts";
import { presentTime } from "./schedule-story.ts";
import type { WebhookStory } from "./webhook-story.ts";

/** Tools for the state that a backup contains in addition to flags and webhooks: schedules and usage. */
export const hourMs = 3_600_000;

/** Schedules the flag, which is on, to be switched off in an hour. */
export async function scheduleInAnHour(
  system: System,
  story: WebhookStory,
  flag = firstOf(story),
): Promise<void> {
  const disable_at = new Date((await presentTime(system.sql)).getTime() + hourMs);
  const [scheduler] = system.schedulers;
  await must(`${scheduler?.url}${schedulePath(story, flag)}`, {
    method: "POST",
    key: story.tenant.serverKey,
    body: { disable_at },
  });
}

export async function readSchedule(
  { schedulers }: System,
  story: WebhookStory,
  flag = firstOf(story),
) {
  const [scheduler] = schedulers;
  return must(`${scheduler?.url}${schedulePath(story, flag)}`, { key: story.tenant.serverKey });
}

function schedulePath({ tenant }: WebhookStory, { id }: CreatedFlag): string {
  return `/api/v1/flags/${id}/environments/${tenant.environmentId}/schedule`;
}

function firstOf({ flags: [flag] }: WebhookStory): CreatedFlag {
  if (flag === undefined) throw new Error("the story has no flag");
  return flag;
}

/** Sends SDK requests, and waits until all of them are counted. Returns the number of requests so far. */
export async function useFlags(
  system: System,
  tenant: Tenant,
  { requests, before = 0 }: { requests: number; before?: number },
): Promise<number> {
  const [edge] = system.edges;
  for (let sent = 0; sent < requests; sent += 1)
    await must(`${edge?.url}/api/v1/sdk/flags`, { key: tenant.clientKey });
  return awaitCounted(system, tenant, { atLeast: before + requests });
}

/**
 * Takes a base backup with PostgreSQL's low-level functions. The files of the cluster are copied while the server
 * works. The write-ahead log up to the end of the copy makes them consistent. Operators use `pg_dump`, which the npm
 * package of the test server does not contain. Both save every schema at one point in time, while the system is in
 * service. A dump contains the data at its start, a base backup those at its end.
 */
export async function takeBaseBackup<T>(
  sql: postgres.Sql,
  paths: { clusterDir: string; backupDir: string },
  /** Runs between the start and the end of the backup, which contains everything that it commits. */
  meanwhile: () => Promise<T>,
): Promise<T> {
  const { clusterDir, backupDir } = paths;
  const session = await sql.reserve();
  try {
    await session`select pg_backup_start('halyard', fast => true)`;
    await copyTree(clusterDir, backupDir);
    const result = await meanwhile();
    const [end] = await session<[{ labelfile: string }]>`
      select labelfile from pg_backup_stop(wait_for_archive => false)`;
    for (const name of ["postmaster.pid", "postmaster.opts", "pg_wal"])
      await rm(join(backupDir, name), { recursive: true, force: true });
    await copyTree(join(clusterDir, "pg_wal"), join(backupDir, "pg_wal"));
    // The label makes PostgreSQL start its recovery at the start of the backup.
    await writeClusterFile(backupDir, { name: "backup_label", text: end.labelfile });
    return result;
  } finally {
    session.release();
  }
}

/** Writes a file of a cluster for its owner, because a test that runs as root runs PostgreSQL as another user. */
export async function writeClusterFile(
  clusterDir: string,
  { name, text }: { name: string; text: string },
): Promise<void> {
  const file = join(clusterDir, name);
  const { uid, gid } = await stat(clusterDir);
  await writeFile(file, text, { mode: 0o600 });
  await chown(file, uid, gid);
}

/** Copies files with their owners and modes, because a test that runs as root runs PostgreSQL as another user. */
export async function copyTree(from: string, to: string): Promise<void> {
  await promisify(execFile)("cp", ["-a", from, to]);
}
