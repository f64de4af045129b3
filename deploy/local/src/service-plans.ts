import { createHash, createPrivateKey, createPublicKey } from "node:crypto";
import { join } from "node:path";
import type { NatsUser } from "@halyard/contracts";
import type { Settings } from "./config.ts";
import type { Credentials } from "./credentials.ts";
import { type DatabaseUrls, hasSchema, type ServiceWithSchema } from "./database.ts";
import { exampleIdsFileIn } from "./home.ts";
import type { ServicePlan } from "./service-process.ts";

export const HOST = "127.0.0.1";

/** In the order of their start: management writes what the others wait for. */
const services = [
  "management",
  "scheduler",
  "sdk-edge",
  "usage-metering",
  "webhook-dispatcher",
] as const satisfies NatsUser[];

/**
 * Each service gets only what it needs. Only services with a schema know the database, each as a role of
 * its own. Only management has the operator's token and signs the entries of API keys. Only edges have the
 * secret of their streams' tokens, and only the dispatcher has the key that encrypts the secrets of webhooks.
 */
export function planServices(options: {
  settings: Settings;
  natsUrl: string;
  credentials: Credentials;
  databaseUrls: DatabaseUrls;
  operatorToken: string;
  migrate: (service: ServiceWithSchema) => Promise<void>;
}): ServicePlan[] {
  const { settings, natsUrl, credentials, databaseUrls, operatorToken } = options;
  const signing = signingSettings(credentials.signing_seed);
  const own: Record<(typeof services)[number], Record<string, string>> = {
    management: { OPERATOR_TOKEN: operatorToken, SIGNING_PRIVATE_KEY: signing.privateKey },
    scheduler: {},
    "sdk-edge": {
      SNAPSHOT_CACHE_FILE: join(settings.home, "sdk-edge/snapshot-cache"),
      STREAM_TOKEN_SECRET: credentials.stream_token_secret,
    },
    "usage-metering": {},
    "webhook-dispatcher": {
      WEBHOOK_SECRET_KEYS: `local:${inBase64(credentials.webhook_secret_key)}`,
      // In development, the receiver of webhooks is usually on the same machine.
      WEBHOOK_ALLOW_PRIVATE_TARGETS: String(settings.mode !== "production"),
    },
  };
  return services.map((name) => ({
    name,
    program: `services/${name}/src/main.ts`,
    port: 0,
    ...(hasSchema(name) && { prepare: () => options.migrate(name) }),
    environment: {
      ...forEveryProcess(settings),
      NATS_URL: natsUrl,
      // For a NATS server of the user's own, the login comes from the environment.
      ...(settings.natsUrl === undefined
        ? { NATS_USER: name, NATS_PASSWORD: credentials.nats_passwords[name] }
        : settings.natsLogin),
      // Others reach the services only through the gateway, which is on this machine.
      TRUSTED_PROXIES: HOST,
      SIGNING_PUBLIC_KEYS: signing.publicKey,
      OPERATOR_TOKEN_DIGEST: createHash("sha256").update(operatorToken).digest("hex"),
      ...(hasSchema(name) && { POSTGRES_URL: databaseUrls[name].runtimeUrl }),
      ...own[name],
      ...settings.ofServices[name],
    },
  }));
}

export function planGateway(settings: Settings, upstreams: Record<string, string>): ServicePlan {
  const addresses = services.map((name) => [
    `UPSTREAM_${name.toUpperCase().replace("-", "_")}_URL`,
    upstreams[name] ?? "",
  ]);
  return {
    name: "gateway",
    program: "deploy/gateway/src/main.ts",
    port: settings.port,
    environment: {
      ...forEveryProcess(settings),
      ...(settings.mode !== "production" && { EXAMPLE_IDS_FILE: exampleIdsFileIn(settings.home) }),
      ...Object.fromEntries(addresses),
    },
  };
}

function forEveryProcess(settings: Settings): Record<string, string> {
  return {
    HALYARD_MODE: settings.mode,
    HOST,
    LOG_LEVEL: settings.logLevel,
    // Node keeps compiled modules here, which takes about a third off the start of a service.
    NODE_COMPILE_CACHE: join(settings.cacheDir, "node"),
    // Less memory, for the reason that is in deploy/docker/Dockerfile.
    NODE_OPTIONS: "--max-semi-space-size=8",
    MALLOC_ARENA_MAX: "1",
  };
}

/** As the dispatcher wants its keys; the home keeps all its secrets as base64url. */
function inBase64(secret: string): string {
  return Buffer.from(secret, "base64url").toString("base64");
}

/** An Ed25519 private key as PKCS#8 is this and its seed of 32 bytes. */
const pkcs8Head = Buffer.from("302e020100300506032b657004220420", "hex");

/** Returns the key pair that signs the entries of API keys, in base64 of DER. */
function signingSettings(seed: string): { privateKey: string; publicKey: string } {
  const der = Buffer.concat([pkcs8Head, Buffer.from(seed, "base64url")]);
  const publicKey = createPublicKey(createPrivateKey({ key: der, format: "der", type: "pkcs8" }));
  const spki = publicKey.export({ format: "der", type: "spki" });
  return { privateKey: der.toString("base64"), publicKey: spki.toString("base64") };
}
