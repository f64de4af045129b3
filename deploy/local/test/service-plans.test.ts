import { createPrivateKey, createPublicKey } from "node:crypto";
import { existsSync } from "node:fs";
import { natsUsers } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { readSettings } from "../src/config.ts";
import type { Credentials } from "../src/credentials.ts";
import { planDashboard, planGateway, planServices } from "../src/service-plans.ts";

/** The same 32 bytes as the home stores them, and as the dispatcher expects them. */
const keptSecretKey = "-_8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const givenSecretKey = "+/8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

const credentials = {
  stream_token_secret: "the edges'",
  webhook_secret_key: keptSecretKey,
  signing_seed: Buffer.alloc(32, 255).toString("base64url"),
  scheduler_signing_seed: Buffer.alloc(32, 254).toString("base64url"),
  webhook_dispatcher_signing_seed: Buffer.alloc(32, 253).toString("base64url"),
  nats_passwords: Object.fromEntries(natsUsers.map((user) => [user, `NATS as ${user}`])),
} as Credentials;

async function environmentOf(service: string, environment: NodeJS.ProcessEnv = {}) {
  const read = await readSettings(environment);
  if (!read.ok) throw new Error(read.problems.join("\n"));
  const urlsOf = (name: string) => ({
    ownerUrl: `postgres://${name}_owner@127.0.0.1/halyard`,
    runtimeUrl: `postgres://${name}_service@127.0.0.1/halyard`,
  });
  const plans = planServices({
    settings: read.settings,
    natsUrl: "nats://127.0.0.1:4222",
    databaseUrls: {
      management: urlsOf("management"),
      scheduler: urlsOf("scheduler"),
      "webhook-dispatcher": urlsOf("webhooks"),
      "usage-metering": urlsOf("usage"),
    },
    operatorToken: "the operator's",
    credentials,
    migrate: async () => undefined,
  });
  return plans.find(({ name }) => name === service)?.environment;
}

describe("given the environment of each service", () => {
  it.each([
    ["management", "management_service"],
    ["scheduler", "scheduler_service"],
    ["webhook-dispatcher", "webhooks_service"],
    ["usage-metering", "usage_service"],
  ])("gives %s its own runtime role and no other", async (name, role) => {
    const text = JSON.stringify(await environmentOf(name));
    expect(text.match(/\w+_(owner|service)/g)).toEqual([role]);
  });

  it.each([
    ["management", ["POSTGRES_URL", "OPERATOR_TOKEN", "SIGNING_PRIVATE_KEY"]],
    ["scheduler", ["POSTGRES_URL", "SCHEDULER_SIGNING_PRIVATE_KEY"]],
    ["sdk-edge", ["STREAM_TOKEN_SECRET"]],
    [
      "webhook-dispatcher",
      ["POSTGRES_URL", "WEBHOOK_DISPATCHER_SIGNING_PRIVATE_KEY", "WEBHOOK_SECRET_KEYS"],
    ],
    ["usage-metering", ["POSTGRES_URL"]],
  ])("gives %s the secrets that it needs and no other", async (name, needed) => {
    const secrets = /postgres:|the operator's|the edges'|-_8A|\+\/8A|MC4CAQAwBQYDK2VwBCIEI/;
    const given = Object.entries((await environmentOf(name)) ?? {});
    expect(given.filter(([, value]) => secrets.test(value)).map(([key]) => key)).toEqual(needed);
  });

  it.each([
    ["scheduler", "SCHEDULER"],
    ["webhook-dispatcher", "WEBHOOK_DISPATCHER"],
  ])("gives %s the private key whose public key management has", async (service, prefix) => {
    const own = (await environmentOf(service))?.[`${prefix}_SIGNING_PRIVATE_KEY`] ?? "";
    const privateKey = { key: Buffer.from(own, "base64"), format: "der", type: "pkcs8" } as const;
    const publicKey = createPublicKey(createPrivateKey(privateKey));
    const known = (await environmentOf("management"))?.[`${prefix}_SIGNING_PUBLIC_KEYS`];
    expect(known).toBe(publicKey.export({ format: "der", type: "spki" }).toString("base64"));
  });

  it.each(["management", "scheduler", "sdk-edge", "webhook-dispatcher", "usage-metering"])(
    "gives %s its own NATS user and no other",
    async (name) => {
      const environment = await environmentOf(name);
      expect(environment).toMatchObject({ NATS_USER: name, NATS_PASSWORD: `NATS as ${name}` });
      expect(JSON.stringify(environment).match(/NATS as/g)).toHaveLength(1);
    },
  );

  it("gives every service the login for the server in NATS_URL", async () => {
    const login = { NATS_USER: "me", NATS_PASSWORD: "mine", NATS_TLS_CA_FILE: "/srv/ca.pem" };
    const given = { NATS_URL: "nats://127.0.0.1:4222", ...login };
    expect(await environmentOf("sdk-edge", given)).toMatchObject(given);
    const environment = await environmentOf("sdk-edge", login);
    expect(environment).toMatchObject({ NATS_USER: "sdk-edge" });
    expect(environment).not.toHaveProperty("NATS_TLS_CA_FILE");
  });
});

describe("given the dashboard and the gateway", () => {
  async function settingsIn(mode: string) {
    const read = await readSettings({
      HALYARD_MODE: mode,
      HALYARD_HOME: "/srv/halyard",
      MAX_CONNECTIONS: "500",
    });
    if (!read.ok) throw new Error(read.problems.join("\n"));
    return read.settings;
  }

  it.each([
    ["the name localhost and the port", {}, "http://localhost:8080"],
    ["the given address", { PUBLIC_URL: "https://flags.example.com" }, "https://flags.example.com"],
  ])("gives management %s as the address of the installation", async (_, given, url) => {
    expect((await environmentOf("management", given))?.PUBLIC_URL).toBe(url);
  });

  it("gives the built dashboard, and a folder that does not exist if the build failed", async () => {
    const settings = await settingsIn("development");
    expect(planDashboard(settings, "/srv/built").environment.DASHBOARD_DIR).toBe("/srv/built");
    const { DASHBOARD_DIR: missing = "" } = planDashboard(settings, undefined).environment;
    expect(existsSync(missing)).toBe(false);
  });

  it("gives the gateway its settings and the addresses of all others", async () => {
    const upstreams = { "sdk-edge": "http://127.0.0.1:1", dashboard: "http://127.0.0.1:2" };
    const { environment } = planGateway(await settingsIn("production"), upstreams);
    expect(environment).toMatchObject({
      MAX_CONNECTIONS: "500",
      UPSTREAM_SDK_EDGE_URL: "http://127.0.0.1:1",
      UPSTREAM_DASHBOARD_URL: "http://127.0.0.1:2",
    });
  });
});

describe("given webhooks", () => {
  it("gives the dispatcher the home's key for their secrets, in base64", async () => {
    expect(await environmentOf("webhook-dispatcher")).toMatchObject({
      WEBHOOK_SECRET_KEYS: `local:${givenSecretKey}`,
    });
  });

  it.each([
    ["allows receivers on this machine", "development", "true"],
    ["blocks private addresses", "production", "false"],
  ])("%s in %s mode", async (_what, mode, allowed) => {
    expect(await environmentOf("webhook-dispatcher", { HALYARD_MODE: mode })).toMatchObject({
      WEBHOOK_ALLOW_PRIVATE_TARGETS: allowed,
    });
  });
});

describe("given settings for single services", () => {
  const services = ["management", "scheduler", "sdk-edge", "usage-metering", "webhook-dispatcher"];
  const settings: Record<string, string[]> = {
    PLANS: ["management"],
    LOG_LEVEL: services,
    POSTGRES_MAX_CONNECTIONS: services.filter((name) => name !== "sdk-edge"),
    KEY_REQUESTS_PER_SECOND: ["management", "scheduler", "usage-metering", "webhook-dispatcher"],
    KEY_REQUESTS_BURST: ["management", "scheduler", "usage-metering", "webhook-dispatcher"],
    SDK_REQUESTS_PER_SECOND: ["sdk-edge"],
    INVALID_KEYS_PER_SECOND: ["sdk-edge"],
    INVALID_KEYS_BURST: ["sdk-edge"],
    WEBHOOKS_PER_PROJECT: ["webhook-dispatcher"],
    WEBHOOK_TESTS_PER_ORGANIZATION: ["webhook-dispatcher"],
    WEBHOOK_RETRY_DELAYS: ["webhook-dispatcher"],
    WEBHOOK_DELIVERY_RETENTION_DAYS: ["webhook-dispatcher"],
  };
  const valid: Record<string, string> = {
    PLANS: "{}",
    LOG_LEVEL: "warn",
    WEBHOOK_RETRY_DELAYS: "1m",
  };

  it.each(Object.entries(settings))(
    "passes %s to %j and to no other service",
    async (name, readers) => {
      const value = valid[name] ?? "30";
      const given = [];
      for (const service of services)
        if ((await environmentOf(service, { [name]: value }))?.[name] === value)
          given.push(service);
      expect(given).toEqual(readers);
    },
  );

  it("does not pass on variables that are not set", async () => {
    for (const service of services)
      for (const name of Object.keys(settings))
        expect(await environmentOf(service)).not.toHaveProperty(name);
  });
});
