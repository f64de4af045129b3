import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type LocalNats, startLocalNats } from "@halyard/local-backends";
import {
  eventually,
  natsServerBinary,
  type RestartablePostgres,
  startRestartablePostgres,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import postgres from "postgres";

/** The program of `npm run setup`. The tests use servers of their own. */
const program = fileURLToPath(new URL("../src/main.ts", import.meta.url));

function startSetup(variables: Record<string, string>, ...given: string[]) {
  const child = spawn(process.execPath, [program, ...given], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      ...variables,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (data: Buffer) => {
      output += data.toString();
    });
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { output: () => output, exited };
}

async function setup(variables: Record<string, string>, ...given: string[]) {
  const running = startSetup(variables, ...given);
  const status = await running.exited;
  return { status, output: running.output() };
}

const roles = ["management", "scheduler", "webhooks", "usage"].flatMap((schema) => [
  `${schema}_owner`,
  `${schema}_service`,
]);
const passwordsFor = (text: string) =>
  Object.fromEntries(roles.map((role) => [`${role.toUpperCase()}_PASSWORD`, `${text} of ${role}`]));

describe("given empty PostgreSQL and NATS servers", () => {
  const directory = mkdtempSync(join(tmpdir(), "halyard-setup-"));
  let database: RestartablePostgres;
  let nats: LocalNats;
  let variables: Record<string, string>;
  let binary: string;
  const startNats = (port?: number) =>
    startLocalNats({
      binary,
      storeDir: join(directory, "nats"),
      settings: 'authorization { users: [{ user: "setup", password: "of setup" }] }',
      ...(port === undefined ? {} : { port }),
    });

  beforeAll(async () => {
    binary = await natsServerBinary();
    [database, nats] = await Promise.all([startRestartablePostgres(), startNats()]);
    variables = {
      POSTGRES_ADMIN_URL: database.adminUrl,
      POSTGRES_DATABASE: "fresh",
      ...passwordsFor("first"),
      NATS_URL: nats.url,
      NATS_USER: "setup",
      NATS_PASSWORD: "of setup",
    };
  });
  afterAll(async () => {
    await Promise.all([database?.stop(), nats?.stop()]);
    rmSync(directory, { recursive: true, force: true });
  });

  async function streams(): Promise<{ name: string; created: string }[]> {
    const connection = await connect({ servers: nats.url, user: "setup", pass: "of setup" });
    const manager = await jetstreamManager(connection);
    const found: { name: string; created: string }[] = [];
    for await (const { config, created } of manager.streams.list())
      found.push({ name: config.name, created });
    await connection.close();
    return found.toSorted((one, other) => one.name.localeCompare(other.name));
  }

  async function logIn(role: string, password: string): Promise<string> {
    const url = new URL(database.adminUrl);
    Object.assign(url, { username: role, password, pathname: "/fresh" });
    const sql = postgres(url.href, { max: 1 });
    try {
      const [row] = await sql`select current_schema() as schema`;
      return row?.schema;
    } finally {
      await sql.end();
    }
  }

  it("creates every role, schema and stream", async () => {
    const { status, output } = await setup(variables);
    expect({ status, output }).toEqual({
      status: 0,
      output:
        "PostgreSQL: database fresh, schemas and roles of management, scheduler, webhooks, usage\n" +
        "NATS: streams FLAG_EVENTS, AUDIT, SCHEDULE, SET_ASIDE, USAGE, EVALUATIONS, KV_QUOTA\n",
    });
    for (const role of roles)
      expect(await logIn(role, `first of ${role}`)).toBe(role.replace(/_\w+$/, ""));
    expect((await streams()).map(({ name }) => name)).toEqual([
      "AUDIT",
      "EVALUATIONS",
      "FLAG_EVENTS",
      "KV_QUOTA",
      "SCHEDULE",
      "SET_ASIDE",
      "USAGE",
    ]);
  });

  it("keeps the data and sets new passwords when it runs again", async () => {
    const before = await streams();
    expect((await setup({ ...variables, ...passwordsFor("second") })).status).toBe(0);
    expect(await streams()).toEqual(before);
    await expect(logIn("usage_owner", "first of usage_owner")).rejects.toThrow(/authentication/);
    expect(await logIn("usage_owner", "second of usage_owner")).toBe("usage");
  });

  it("shows no password in the log of PostgreSQL, even when the server logs every statement", async () => {
    const sql = postgres(database.adminUrl, { max: 1, onnotice: () => undefined });
    await sql`alter system set log_statement = 'all'`;
    await sql`select pg_reload_conf()`;
    await sql.end();
    expect((await setup({ ...variables, ...passwordsFor("logged") })).status).toBe(0);
    const log = readFileSync(database.logFile, "utf8");
    expect(log).toContain("alter role usage_service login password 'SCRAM-SHA-256$");
    expect(log).not.toContain("logged of");
  });

  it("reports the server that rejects its password, and prepares the other one", async () => {
    const { status, output } = await setup({ ...variables, NATS_PASSWORD: "another" });
    expect(status).toBe(1);
    expect(output).toMatch(/^PostgreSQL: database fresh/);
    expect(output).toMatch(/^NATS could not be prepared: .*authorization/im);
  });

  it("waits for a server that is not yet available", async () => {
    await nats.stop();
    const running = startSetup(variables);
    await eventually(() => running.output().includes("NATS is unavailable, retrying"));
    nats = await startNats(nats.port);
    expect(await running.exited).toBe(0);
  });

  it("reports all missing variables", async () => {
    const { status, output } = await setup({});
    expect(status).toBe(2);
    for (const name of [
      "POSTGRES_ADMIN_URL",
      "MANAGEMENT_OWNER_PASSWORD",
      "USAGE_SERVICE_PASSWORD",
    ])
      expect(output).toContain(`${name} is not set`);
  });

  it("prints its help on --help", async () => {
    const { status, output } = await setup({}, "--help");
    expect(status).toBe(0);
    expect(output).toContain("POSTGRES_ADMIN_URL");
  });
});
