import { describe, expect, it } from "@jest/globals";
import { parseArguments } from "../src/arguments.ts";
import { readSettings } from "../src/config.ts";

describe("given no settings", () => {
  it("takes port 8080, development mode and a home in the project", () => {
    expect(readSettings({})).toMatchObject({
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
  it("takes them, and an empty one counts as none", () => {
    const result = readSettings({
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

  it("reports every problem together", () => {
    const result = readSettings({
      PORT: "70000",
      HALYARD_MODE: "staging",
      OPERATOR_TOKEN: "too short",
      POSTGRES_URL: "localhost:5432",
    });
    expect(result).toEqual({
      ok: false,
      problems: [
        'PORT must be a number from 0 (any free port) to 65535, but is "70000".',
        'HALYARD_MODE must be "development" or "production", but is "staging".',
        "OPERATOR_TOKEN must have at least 32 characters.",
        "POSTGRES_URL must look like postgres://user:password@host:5432/postgres.",
      ],
    });
  });

  it.each(["-1", "80.5", "1e3", "http"])("refuses the port %s", (port) => {
    expect(readSettings({ PORT: port }).ok).toBe(false);
  });
});

describe("given NODE_ENV", () => {
  it.each([
    [{ NODE_ENV: "production" }, "production"],
    [{ NODE_ENV: "production", HALYARD_MODE: "development" }, "development"],
    [{ NODE_ENV: "test" }, "development"],
    [{ NODE_ENV: "development", HALYARD_MODE: "production" }, "production"],
  ])("takes the mode from %j only where HALYARD_MODE is not set", (environment, mode) => {
    expect(readSettings(environment)).toMatchObject({ settings: { mode } });
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
  ])("understands %j", (given, expected) => {
    expect(parseArguments(given)).toEqual(expected);
  });
});
