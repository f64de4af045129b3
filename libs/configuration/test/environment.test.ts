import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { z } from "zod";
import {
  ConfigurationError,
  documentVariables,
  listenHost,
  readEnvironment,
  sharedVariables,
  urlOf,
  variable,
} from "../src/index.ts";

const schema = z.object({
  ...sharedVariables,
  POSTGRES_URL: variable(urlOf("postgres:", "postgresql:"), {
    description: "The database.",
    expects: "a URL such as postgres://user:password@host/database",
    secret: true,
  }),
});

const good = { POSTGRES_URL: "postgres://me:secret@localhost/halyard" };

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    readEnvironment(schema, env);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
  return [];
}

describe("given an environment", () => {
  it("uses the defaults of variables that are not set or empty", () => {
    expect(readEnvironment(schema, { ...good, PORT: "", LOG_LEVEL: "" })).toEqual({
      ...good,
      HALYARD_MODE: "production",
      PORT: 0,
      METRICS_PORT: 0,
      NATS_URL: "nats://127.0.0.1:4222",
      LOG_LEVEL: "info",
      TRUSTED_PROXIES: [],
      MAX_CONNECTIONS: 20_000,
      MAX_CONNECTIONS_PER_ADDRESS: 10_000,
      OTEL_TRACES_EXPORTER: "otlp",
      OTEL_SDK_DISABLED: false,
      OTEL_TRACES_SAMPLER: "parentbased_always_on",
      OTEL_TRACES_SAMPLER_ARG: 1,
      OTEL_BSP_SCHEDULE_DELAY: 5_000,
      OTEL_BSP_MAX_QUEUE_SIZE: 2_048,
    });
  });

  it("reads the set variables", () => {
    const env = {
      ...good,
      HALYARD_MODE: "development",
      HOST: "::1",
      PORT: "8080",
      NATS_URL: "nats://one:4222,nats://user:pass@two:4222",
      TRUSTED_PROXIES: "10.0.0.0/8, ::1",
      UNKNOWN: "is not ours",
    };
    expect(readEnvironment(schema, env)).toMatchObject({
      PORT: 8080,
      HOST: "::1",
      TRUSTED_PROXIES: ["10.0.0.0/8", "::1"],
    });
  });

  it("reports all problems together, with the name and the expected value", () => {
    expect(problemsOf({ PORT: "80x", LOG_LEVEL: "loud", TRUSTED_PROXIES: "10.0.0.0/64" })).toEqual([
      "PORT must be a port from 0 to 65535.",
      "LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent.",
      "TRUSTED_PROXIES must be addresses or CIDR ranges, separated by commas.",
      "POSTGRES_URL is not set: it must be a URL such as postgres://user:password@host/database.",
    ]);
  });

  it("reports the specific message of a check instead of the expected value", () => {
    const even = z.string().refine((text) => Number(text) % 2 === 0, {
      error: "must be even",
      params: { isSentenceEnd: true },
    });
    const specific = z.object({ COUNT: variable(even, { description: "", expects: "a number" }) });
    expect(() => readEnvironment(specific, { COUNT: "3" })).toThrow(
      expect.objectContaining({ problems: ["COUNT must be even."] }),
    );
  });

  it.each(["65536", "-1", "1e3", "0x50", " 80", "8080.5"])("rejects %s as a port", (PORT) => {
    expect(problemsOf({ ...good, PORT })).toEqual(["PORT must be a port from 0 to 65535."]);
  });

  it("never repeats a value", () => {
    const problems = problemsOf({ POSTGRES_URL: "mysql://me:hunter2@localhost", PORT: "hunter2" });
    expect(problems).toHaveLength(2);
    expect(problems.join()).not.toContain("hunter2");
  });

  it("listens on all addresses in production and only on loopback in development", () => {
    expect(listenHost({ HALYARD_MODE: "production" })).toBe("0.0.0.0");
    expect(listenHost({ HALYARD_MODE: "development" })).toBe("127.0.0.1");
    expect(listenHost({ HALYARD_MODE: "development", HOST: "10.0.0.1" })).toBe("10.0.0.1");
  });
});

describe("given a schema of variables", () => {
  it("documents each variable with its default, and marks secrets", () => {
    const documented = documentVariables(schema);
    expect(documented.find(({ name }) => name === "POSTGRES_URL")).toEqual({
      name: "POSTGRES_URL",
      description: "The database.",
      expects: "a URL such as postgres://user:password@host/database",
      defaultText: undefined,
      secret: true,
    });
    const defaults = Object.fromEntries(documented.map((row) => [row.name, row.defaultText]));
    expect(defaults).toMatchObject({ PORT: "0", LOG_LEVEL: "info", TRUSTED_PROXIES: "none" });
  });
});

describe("given a variable whose value is in a file", () => {
  const directory = mkdtempSync(join(tmpdir(), "halyard-secrets-"));
  afterAll(() => rmSync(directory, { recursive: true }));
  const file = join(directory, "postgres");
  writeFileSync(file, `${good.POSTGRES_URL}\n`);
  writeFileSync(join(directory, "empty"), "\n");

  it("reads the file without the line break at its end", () => {
    expect(readEnvironment(schema, { POSTGRES_URL_FILE: file })).toMatchObject(good);
  });

  it("rejects a variable that is also set, without its value", () => {
    expect(problemsOf({ ...good, POSTGRES_URL_FILE: file })).toEqual([
      "Only one of POSTGRES_URL and POSTGRES_URL_FILE may be set.",
    ]);
  });

  it.each([["missing"], ["empty"]])("rejects a file that is %s", (name) => {
    expect(problemsOf({ POSTGRES_URL_FILE: join(directory, name), PORT: "x" })).toEqual([
      "POSTGRES_URL_FILE must be the path of a file with a value that this process can read.",
      "PORT must be a port from 0 to 65535.",
    ]);
  });
});
