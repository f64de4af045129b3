import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { createTestDatabase } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import postgres from "postgres";

/** The program of `npm run migrate`. These tests use the superuser in place of the owners. */
const program = fileURLToPath(new URL("../src/main.ts", import.meta.url));

function migrate(variables: Record<string, string>, ...given: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...given], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      ...variables,
    },
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

const database = await createTestDatabase();
afterAll(() => database.drop());
const sql = postgres(database.adminUrl, { max: 1, onnotice: () => undefined });
await sql`drop schema scheduler cascade`;
await sql`create schema scheduler`;
await sql`drop schema webhooks cascade`;
await sql`create schema webhooks`;
await sql`drop schema usage cascade`;
await sql`create schema usage`;
await sql.end();

describe("given schemas of several services", () => {
  it("skips a schema whose owner's address is not set, and reports it", () => {
    expect(migrate({ MANAGEMENT_OWNER_URL: database.adminUrl })).toEqual({
      status: 0,
      stdout:
        "management: nothing to do\nscheduler: skipped, SCHEDULER_OWNER_URL is not set\n" +
        "webhook-dispatcher: skipped, WEBHOOKS_OWNER_URL is not set\n" +
        "usage-metering: skipped, USAGE_OWNER_URL is not set\n",
      stderr: "",
    });
  });

  it("migrates every schema that is not up to date", () => {
    const owners = {
      MANAGEMENT_OWNER_URL: database.adminUrl,
      SCHEDULER_OWNER_URL: database.adminUrl,
      WEBHOOKS_OWNER_URL: database.adminUrl,
      USAGE_OWNER_URL: database.adminUrl,
    };
    const { status, stdout } = migrate(owners);
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /^management: nothing to do\nscheduler: 0001_schedules.*\nwebhook-dispatcher: 0001_webhooks.*\nusage-metering: 0001_usage/,
    );
    expect(migrate(owners).stdout).toBe(
      ["management", "scheduler", "webhook-dispatcher", "usage-metering"]
        .map((service) => `${service}: nothing to do\n`)
        .join(""),
    );
  });

  it("stops at the first failed migration", () => {
    const closed = "postgres://nobody:secret@127.0.0.1:1/halyard";
    const ended = migrate({ MANAGEMENT_OWNER_URL: closed, SCHEDULER_OWNER_URL: database.adminUrl });
    expect(ended.status).toBe(1);
    expect(ended.stdout).toBe("");
    expect(ended.stderr).toContain("ECONNREFUSED");
    expect(ended.stderr).not.toContain("secret");
  });
});

describe("given no address, or an unknown argument", () => {
  it("lists the variables that it needs", () => {
    const bare = migrate({});
    expect(bare.status).toBe(2);
    expect(bare.stderr).toContain(
      "MANAGEMENT_OWNER_URL, SCHEDULER_OWNER_URL, WEBHOOKS_OWNER_URL or USAGE_OWNER_URL",
    );
    expect(migrate({}, "--all").status).toBe(2);
  });

  it("prints its help on --help", () => {
    const asked = migrate({}, "--help");
    expect(asked.status).toBe(0);
    expect(asked.stdout).toContain("npm run migrate");
  });
});
