import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import postgres from "postgres";
import { awaitEarlierServer } from "../src/earlier-server.ts";
import { type LocalPostgres, startLocalPostgres } from "../src/index.ts";
import { isRunning } from "../src/running-processes.ts";
import { eventually } from "./gone.ts";
import { throwawayDirectories } from "./throwaway.ts";

const throwawayDirectory = throwawayDirectories();

const parent = throwawayDirectory();
const reachableDirectory = join(parent, "reachable");
let count = 0;
const running: LocalPostgres[] = [];

function newDataDir(): string {
  count += 1;
  return join(parent, `data-${count}`);
}

/** A cluster of an earlier run, which tests copy, because creating a cluster takes most of a second. */
const earlierRun = join(parent, "earlier-run");

await (await start({ dataDir: earlierRun })).stop();

function usedDataDir(): string {
  const dataDir = newDataDir();
  execFileSync("cp", ["-a", earlierRun, dataDir]);
  return dataDir;
}

async function start(options: { dataDir: string; port?: number }): Promise<LocalPostgres> {
  const server = await startLocalPostgres({ ...options, reachableDirectory, durable: false });
  running.push(server);
  return server;
}

async function query<T>(url: string, run: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return await run(sql);
  } finally {
    await sql.end();
  }
}

afterEach(async () => {
  for (const server of running.splice(0)) await server.stop();
});

describe("given a new data directory", () => {
  it("starts a server that accepts connections only with its password", async () => {
    const dataDir = newDataDir();
    const server = await start({ dataDir });

    const rows = await query(server.adminUrl, (sql) => sql`select current_user as name`);
    expect(rows[0]?.name).toBe("postgres");
    expect(readdirSync(dataDir)).not.toContainEqual(expect.stringMatching(/^initdb-/));

    const wrong = server.adminUrl.replace(server.password, "wrong");
    await expect(query(wrong, (sql) => sql`select 1`)).rejects.toMatchObject({ code: "28P01" });
  });

  it("listens only on loopback, without a Unix socket, with the encoding UTF-8", async () => {
    const server = await start({ dataDir: usedDataDir() });

    const settings = await query(
      server.adminUrl,
      (sql) => sql`
        select
          current_setting('listen_addresses') as addresses,
          current_setting('unix_socket_directories') as sockets,
          current_setting('server_encoding') as encoding
      `,
    );
    expect(settings[0]).toEqual({ addresses: "127.0.0.1", sockets: "", encoding: "UTF8" });
  });

  it("leaves no process when it is stopped", async () => {
    const server = await start({ dataDir: usedDataDir() });

    expect(await server.stop()).toEqual({ code: 0, signal: null });
    expect(isRunning(server.pid)).toBe(false);
  });
});

describe("given a data directory of an earlier run", () => {
  it("keeps the data and the password", async () => {
    const dataDir = usedDataDir();
    const first = await start({ dataDir });
    await query(first.adminUrl, (sql) => sql`create table kept (id int)`);
    await first.stop();

    const second = await start({ dataDir, port: first.port });

    expect(second.adminUrl).toBe(first.adminUrl);
    const rows = await query(second.adminUrl, (sql) => sql`select to_regclass('kept') as found`);
    expect(rows[0]?.found).toBe("kept");
  });

  it("starts again after the server was killed", async () => {
    const dataDir = usedDataDir();
    const first = await start({ dataDir });
    process.kill(first.pid, "SIGKILL");
    await first.exited;

    const second = await start({ dataDir });

    await expect(query(second.adminUrl, (sql) => sql`select 1`)).resolves.toHaveLength(1);
  });

  it("starts even if postmaster.pid contains the id of another program's process", async () => {
    const dataDir = usedDataDir();
    const clusterDir = join(dataDir, "cluster");
    const stale = [process.pid, clusterDir, 1, 5432, "", "127.0.0.1", "", "ready"];
    writeFileSync(join(clusterDir, "postmaster.pid"), `${stale.join("\n")}\n`);

    const second = await start({ dataDir });

    await expect(query(second.adminUrl, (sql) => sql`select 1`)).resolves.toHaveLength(1);
  });
});

describe("given a data directory that another server uses", () => {
  it("reports the process of that server and the command that stops it", async () => {
    const server = await start({ dataDir: usedDataDir() });

    const waiting = awaitEarlierServer({
      name: "PostgreSQL",
      dataDir: server.clusterDir,
      stopCommand: "kill -INT",
      onStep: () => {},
      timeoutMs: 0,
    });

    await expect(waiting).rejects.toThrow(`Stop it with \`kill -INT ${server.pid}\``);
  });

  it("starts if that server ends in time", async () => {
    const dataDir = usedDataDir();
    const first = await start({ dataDir });
    const steps: string[] = [];

    const starting = startLocalPostgres({
      dataDir,
      reachableDirectory,
      durable: false,
      onStep: (text) => steps.push(text),
    });
    await eventually("it waits", () => steps.some((step) => step.includes("waiting")));
    await first.stop();

    running.push(await starting);
  });
});

describe("given damaged data", () => {
  it("reports the end of the log and the command that moves the data away", async () => {
    const dataDir = usedDataDir();
    const clusterDir = join(dataDir, "cluster");
    rmSync(join(clusterDir, "global/pg_control"));

    const starting = start({ dataDir });

    await expect(starting).rejects.toThrow(`mv '${clusterDir}' '${clusterDir}.damaged'`);
    await expect(starting).rejects.toThrow("pg_control");
  });

  it.each([
    [
      "the directory contains other files",
      "PG_VERSION",
      undefined,
      "is not a PostgreSQL data directory",
    ],
    ["another version created the data", "PG_VERSION", "9.6\n", "was created by PostgreSQL 9.6"],
  ])("reports that %s", async (_case, file, content, message) => {
    const dataDir = usedDataDir();
    const clusterDir = join(dataDir, "cluster");
    if (content === undefined) rmSync(join(clusterDir, file));
    else writeFileSync(join(clusterDir, file), content);

    await expect(start({ dataDir })).rejects.toThrow(message);
  });

  it("reports a missing password", async () => {
    const dataDir = usedDataDir();
    rmSync(join(dataDir, "superuser-password"));

    await expect(start({ dataDir })).rejects.toThrow(/is missing in .*superuser-password\./);
  });
});

describe("given a port that another process uses", () => {
  const occupant = createServer();
  afterAll(() => void occupant.close());

  it("reports the port", async () => {
    occupant.listen(0, "127.0.0.1");
    await once(occupant, "listening");
    const address = occupant.address();
    const port = typeof address === "object" ? (address?.port ?? 0) : 0;

    const starting = start({ dataDir: usedDataDir(), port });

    await expect(starting).rejects.toThrow(`The port ${port} for PostgreSQL is taken`);
  });
});
