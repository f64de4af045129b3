import { execFile } from "node:child_process";
import { chown, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type postgres from "postgres";

/**
 * A base backup by PostgreSQL's low-level functions: the cluster's files are copied while the server works,
 * and the write-ahead log up to the end of the copy makes them consistent. Operators use `pg_dump`, which
 * the npm package of the test server does not contain. Both take every schema at one moment, from a system
 * in service. They differ in that moment: a dump has the data of its start, a base backup those of its end.
 */
export async function takeBaseBackup<T>(
  sql: postgres.Sql,
  paths: { clusterDir: string; backupDir: string },
  /** Runs between the start and the end of the backup, which contains all that it commits. */
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
    await writeLabel(backupDir, end.labelfile);
    return result;
  } finally {
    session.release();
  }
}

/** The label makes PostgreSQL begin its recovery at the start of the backup. */
async function writeLabel(backupDir: string, label: string): Promise<void> {
  const file = join(backupDir, "backup_label");
  const { uid, gid } = await stat(backupDir);
  await writeFile(file, label, { mode: 0o600 });
  await chown(file, uid, gid);
}

/** Keeps owner and modes: as root the test runs PostgreSQL as another user. */
export async function copyTree(from: string, to: string): Promise<void> {
  await promisify(execFile)("cp", ["-a", from, to]);
}
