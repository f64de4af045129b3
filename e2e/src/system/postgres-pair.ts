import { chmod, copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type LocalPostgres, startLocalPostgres } from "@halyard/local-backends";
import {
  connectAsSuperuser,
  eventually,
  type RestartablePostgres,
  startRestartablePostgres,
} from "@halyard/testing";
import type postgres from "postgres";
import { takeBaseBackup, writeClusterFile } from "../stories/restore-story.ts";
import { openTcpGate, type TcpGate } from "./tcp-gate.ts";

/**
 * A PostgreSQL server with a streaming standby. `adminUrl` and `runtimeUrls` have the address of a gate, which leads to
 * the primary, as a virtual address or a Service of Kubernetes does. The other members are those of the first primary.
 */
export type PostgresPair = RestartablePostgres & {
  /** The gate between the two servers. A shut one makes an asynchronous standby fall behind. */
  replication: TcpGate;
  /** Waits until the standby has received everything that the primary has written. */
  awaitReceived(): Promise<void>;
  /** Promotes the standby as `pg_ctl promote` does, and makes the address lead to it. */
  promote(): Promise<void>;
};

const standbyName = "standby";
/** If root runs the test, PostgreSQL's user must be able to pass through the directory. */
const openToPass = 0o711;

/** With `synchronous`, the primary acknowledges no commit before the standby has it on disk. */
export async function startPostgresPair(options: { synchronous: boolean }): Promise<PostgresPair> {
  const primary = await startRestartablePostgres();
  const address = await openTcpGate(portOf(primary.adminUrl));
  const replication = await openTcpGate(portOf(primary.adminUrl));
  const directory = await mkdtemp(join(tmpdir(), "halyard-test-standby-"));
  await chmod(directory, openToPass);
  const standby = await asSuperuser(primary.adminUrl, async (sql) => {
    const started = await startStandby(sql, { primary, replication, directory });
    await awaitReplication(sql, "async");
    if (options.synchronous) await makeSynchronous(sql);
    return started;
  });
  const { runtimeUrls } = primary;
  const through = (url: string) => withPort(url, address.port);
  return {
    ...primary,
    adminUrl: through(primary.adminUrl),
    runtimeUrls: Object.fromEntries(
      Object.entries(runtimeUrls).map(([schema, url]) => [schema, through(url)]),
    ) as typeof runtimeUrls,
    replication,
    awaitReceived: () => asSuperuser(primary.adminUrl, awaitReceived),
    async promote() {
      const direct = withPort(primary.adminUrl, standby.port);
      await asSuperuser(direct, async (sql) => void (await sql`select pg_promote()`));
      address.leadTo(standby.port);
    },
    async stop() {
      await Promise.all([primary.stop(), standby.stop(), address.close(), replication.close()]);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Starts a server from a base backup of the primary, with its password, and makes it stream from there. */
async function startStandby(
  sql: postgres.Sql,
  options: { primary: RestartablePostgres; replication: TcpGate; directory: string },
): Promise<LocalPostgres> {
  const { primary, replication, directory } = options;
  const clusterDir = join(directory, "cluster");
  await takeBaseBackup(sql, { ...primary, backupDir: clusterDir }, async () => undefined);
  const { username, password } = new URL(primary.adminUrl);
  const source = `host=127.0.0.1 port=${replication.port} user=${username} password=${password}`;
  await writeClusterFile(clusterDir, {
    name: "postgresql.auto.conf",
    text: `primary_conninfo = '${source} application_name=${standbyName}'\n`,
  });
  await writeClusterFile(clusterDir, { name: "standby.signal", text: "" });
  const passwordFile = "superuser-password";
  await copyFile(join(dirname(primary.logFile), passwordFile), join(directory, passwordFile));
  return startLocalPostgres({ dataDir: directory, throwaway: true });
}

async function makeSynchronous(sql: postgres.Sql): Promise<void> {
  await sql.unsafe(`alter system set synchronous_standby_names = '${standbyName}'`);
  await sql`select pg_reload_conf()`;
  await awaitReplication(sql, "sync");
}

async function awaitReceived(sql: postgres.Sql): Promise<void> {
  await eventually(
    async () => {
      const rows = await sql`
        select from pg_stat_replication where flush_lsn >= pg_current_wal_flush_lsn()`;
      return rows.length === 1;
    },
    { because: "the standby has received everything" },
  );
}

async function asSuperuser<T>(url: string, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = connectAsSuperuser(url, "management");
  try {
    return await work(sql);
  } finally {
    await sql.end();
  }
}

async function awaitReplication(sql: postgres.Sql, state: "async" | "sync"): Promise<void> {
  await eventually(
    async () => {
      const rows = await sql`
        select from pg_stat_replication
        where application_name = ${standbyName} and sync_state = ${state}`;
      return rows.length === 1;
    },
    { because: `the standby replicates (${state})` },
  );
}

const portOf = (url: string) => Number(new URL(url).port);

function withPort(url: string, port: number): string {
  const changed = new URL(url);
  changed.port = String(port);
  return changed.href;
}
