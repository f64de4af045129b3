import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { parseArguments } from "../src/arguments.ts";
import { readSettings } from "../src/config.ts";
import { throwawayDirectories } from "./throwaway.ts";

const throwawayDirectory = throwawayDirectories();

describe("given no settings", () => {
  it("uses port 8080, development mode and a home in the project", async () => {
    expect(await readSettings({})).toMatchObject({
      ok: true,
      settings: {
        port: 8080,
        mode: "development",
        home: expect.stringMatching(/\/\.halyard$/),
        natsUrl: undefined,
        postgresUrl: undefined,
      },
    });
  });
});

describe("given settings", () => {
  it("uses them, and treats an empty one as not set", async () => {
    const result = await readSettings({
      PORT: "0",
      HALYARD_HOME: "/srv/halyard",
      HALYARD_MODE: "production",
      NATS_URL: "",
      POSTGRES_URL: "postgresql://localhost/postgres",
    });
    expect(result).toMatchObject({
      ok: true,
      settings: {
        port: 0,
        home: "/srv/halyard",
        mode: "production",
        natsUrl: undefined,
        postgresUrl: "postgresql://localhost/postgres",
      },
    });
  });

  it("reports all problems together", async () => {
    const result = await readSettings({
      PORT: "70000",
      HALYARD_MODE: "staging",
      OPERATOR_TOKEN: "too short",
      POSTGRES_URL: "localhost:5432",
    });
    expect(result).toEqual({
      ok: false,
      problems: [
        "HALYARD_MODE must be development or production.",
        "PORT must be a port from 0 to 65535.",
        "OPERATOR_TOKEN must be a secret of at least 32 characters.",
        "POSTGRES_URL must look like postgres://user:password@host:5432/postgres.",
      ],
    });
  });

  it.each(["-1", "80.5", "1e3", "http"])("rejects the port %s", async (port) => {
    expect((await readSettings({ PORT: port })).ok).toBe(false);
  });

  it("rejects an address of PostgreSQL that is no URL", async () => {
    expect((await readSettings({ POSTGRES_URL: "postgres://localhost:99999/db" })).ok).toBe(false);
  });
});

describe("given settings that services use", () => {
  it("reports their problems together with those of the launcher", async () => {
    const result = await readSettings({
      PORT: "70000",
      LOG_LEVEL: "loud",
      PLANS: '{ "pro": { "requests_per_month": -1, "sse_connections": 5, "projects": 5 } }',
      KEY_REQUESTS_PER_SECOND: "many",
      WEBHOOK_RETRY_DELAYS: "1 minute",
    });

    expect(result).toEqual({
      ok: false,
      problems: [
        "PORT must be a port from 0 to 65535.",
        "LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent.",
        'PLANS has the plan "pro", whose requests_per_month must be a whole number from 0, or null.',
        "KEY_REQUESTS_PER_SECOND must be a number above 0, such as 100 or 0.5.",
        "WEBHOOK_RETRY_DELAYS must be durations such as 30s, 5m or 2h, separated by commas.",
      ],
    });
  });

  it("ignores variables that the launcher replaces", async () => {
    const environment = { METRICS_PORT: "many", STREAM_TOKEN_SECRET: "short", HOST: "0.0.0.0" };
    const result = await readSettings(environment);
    expect(result).toMatchObject({ ok: true });
    for (const name of Object.keys(environment)) expect(JSON.stringify(result)).not.toContain(name);
  });

  it("accepts valid ones", async () => {
    const environment = { LOG_LEVEL: "debug", WEBHOOK_RETRY_DELAYS: "1s,2s" };
    expect(await readSettings(environment)).toMatchObject({
      settings: {
        ofProcesses: {
          gateway: { LOG_LEVEL: "debug" },
          "webhook-dispatcher": { LOG_LEVEL: "debug", WEBHOOK_RETRY_DELAYS: "1s,2s" },
        },
      },
    });
  });
});

describe("given files with values", () => {
  const directory = throwawayDirectory();
  const fileWith = (text: string) => {
    const file = join(directory, randomUUID());
    writeFileSync(file, text);
    return file;
  };

  it("reads settings of the launcher and of processes from them", async () => {
    const operatorToken = "t".repeat(32);
    const result = await readSettings({
      OPERATOR_TOKEN_FILE: fileWith(`${operatorToken}\n`),
      POSTGRES_URL_FILE: fileWith("postgres://localhost/postgres\n"),
      WEBHOOK_RETRY_DELAYS_FILE: fileWith("1s,2s"),
    });
    expect(result).toMatchObject({
      settings: {
        operatorToken,
        postgresUrl: "postgres://localhost/postgres",
        ofProcesses: { "webhook-dispatcher": { WEBHOOK_RETRY_DELAYS: "1s,2s" } },
      },
    });
  });

  it("reports missing files together with other problems", async () => {
    const missing = join(directory, "missing");
    const result = await readSettings({
      PORT: "70000",
      LOG_LEVEL_FILE: missing,
      HALYARD_HOME_FILE: missing,
    });
    const problemOf = (name: string) =>
      `${name} must be the path of a file with a value that this process can read.`;
    expect(result).toEqual({
      ok: false,
      problems: [
        problemOf("LOG_LEVEL_FILE"),
        "PORT must be a port from 0 to 65535.",
        problemOf("HALYARD_HOME_FILE"),
      ],
    });
  });
});

describe("given NODE_ENV", () => {
  it.each([
    [{ NODE_ENV: "production" }, "production"],
    [{ NODE_ENV: "production", HALYARD_MODE: "development" }, "development"],
    [{ NODE_ENV: "test" }, "development"],
    [{ NODE_ENV: "development", HALYARD_MODE: "production" }, "production"],
  ])("derives the mode from %j only if HALYARD_MODE is not set", async (environment, mode) => {
    expect(await readSettings(environment)).toMatchObject({ settings: { mode } });
  });
});

describe("given arguments", () => {
  it.each([
    [[], { kind: "run", watch: false, removeDemoKeys: false }],
    [["--watch"], { kind: "run", watch: true, removeDemoKeys: false }],
    [["--remove-demo-keys"], { kind: "run", watch: false, removeDemoKeys: true }],
    [["--watch", "--help"], { kind: "help" }],
    [["-h"], { kind: "help" }],
    [["--wach"], { kind: "unknown", argument: "--wach" }],
  ])("parses %j", (given, expected) => {
    expect(parseArguments(given)).toEqual(expected);
  });
});
