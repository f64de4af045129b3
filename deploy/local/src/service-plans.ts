import { createHash, createPrivateKey, createPublicKey } from "node:crypto";
import { join } from "node:path";
import { type NatsUser, type ServiceName, serviceNames } from "@halyard/contracts";
import { type ProcessName, publicUrlOf, type Settings } from "./config.ts";
import type { Credentials } from "./credentials.ts";
import { type DatabaseUrls, hasSchema, type ServiceWithSchema } from "./database.ts";
import { demoFileIn } from "./home.ts";
import type { ServicePlan } from "./service-process.ts";

export const HOST = "127.0.0.1";

/**
 * Returns the plans of the services in the order of their start. Management is first, because the others wait for what
 * it writes. The environment of each service contains only what that service needs. A service with a schema
 * connects to the database as its own role. Only management has the operator token. Each service that signs has only
 * its own private key. Only edges have the secret of stream tokens. Only the dispatcher has the key that encrypts the
 * secrets of webhooks.
 */
export function planServices(options: {
  settings: Settings;
  natsUrl: string;
  credentials: Credentials;
  databaseUrls: DatabaseUrls;
  operatorToken: string;
  migrate: (service: ServiceWithSchema) => Promise<void>;
}): ServicePlan[] {
  const { settings, credentials, databaseUrls, operatorToken } = options;
  const signing = signingKeys(credentials.signing_seed);
  const schedulerSigning = signingKeys(credentials.scheduler_signing_seed);
  const dispatcherSigning = signingKeys(credentials.webhook_dispatcher_signing_seed);
  const own: Record<ServiceName, Record<string, string>> = {
    management: {
      OPERATOR_TOKEN: operatorToken,
      SIGNING_PRIVATE_KEY: signing.privateKey,
      SCHEDULER_SIGNING_PUBLIC_KEYS: schedulerSigning.publicKey,
      WEBHOOK_DISPATCHER_SIGNING_PUBLIC_KEYS: dispatcherSigning.publicKey,
    },
    scheduler: { SCHEDULER_SIGNING_PRIVATE_KEY: schedulerSigning.privateKey },
    "sdk-edge": {
      SNAPSHOT_CACHE_FILE: join(settings.home, "sdk-edge/snapshot-cache"),
      STREAM_TOKEN_SECRET: credentials.stream_token_secret,
    },
    "usage-metering": {},
    "webhook-dispatcher": {
      WEBHOOK_DISPATCHER_SIGNING_PRIVATE_KEY: dispatcherSigning.privateKey,
      WEBHOOK_SECRET_KEYS: `local:${inBase64(credentials.webhook_secret_key)}`,
      // In development, the receiver of webhooks usually runs on the same machine.
      WEBHOOK_ALLOW_PRIVATE_TARGETS: String(settings.mode !== "production"),
    },
  };
  return serviceNames.map((name) => ({
    ...{ name, port: 0 },
    ...(hasSchema(name) && { prepare: () => options.migrate(name) }),
    environment: {
      ...forProcess(name, settings),
      ...natsLogin(name, options),
      // The services are reached only through the gateway, which runs on this machine.
      TRUSTED_PROXIES: HOST,
      SIGNING_PUBLIC_KEYS: signing.publicKey,
      PUBLIC_URL: publicUrlOf(settings),
      OPERATOR_TOKEN_DIGEST: createHash("sha256").update(operatorToken).digest("hex"),
      ...(hasSchema(name) && { POSTGRES_URL: databaseUrls[name].runtimeUrl }),
      ...own[name],
    },
  }));
}

/** Returns the variables with which a user connects to NATS. */
export function natsLogin(
  user: NatsUser,
  options: { settings: Settings; natsUrl: string; credentials: Credentials },
): Record<string, string> {
  const { settings, natsUrl, credentials } = options;
  return {
    NATS_URL: natsUrl,
    // The login for the server in NATS_URL comes from the environment.
    ...(settings.natsUrl === undefined && {
      NATS_USER: user,
      NATS_PASSWORD: credentials.nats_passwords[user],
    }),
  };
}

/** `folder` contains the built dashboard; it is undefined if the build failed. */
export function planDashboard(settings: Settings, folder: string | undefined): ServicePlan {
  return {
    name: "dashboard",
    port: 0,
    environment: {
      ...forProcess("dashboard", settings),
      // Without a dashboard, the process must not serve an older one that was built by hand.
      DASHBOARD_DIR: folder ?? join(settings.cacheDir, "no-dashboard"),
      TRUSTED_PROXIES: HOST,
      ...(settings.mode !== "production" && { DEMO_FILE: demoFileIn(settings.home) }),
    },
  };
}

export function planGateway(settings: Settings, upstreams: Record<string, string>): ServicePlan {
  const addresses = Object.entries(upstreams).map(([name, url]) => [
    `UPSTREAM_${name.toUpperCase().replace("-", "_")}_URL`,
    url,
  ]);
  return {
    name: "gateway",
    port: settings.port,
    environment: {
      ...forProcess("gateway", settings),
      PUBLIC_URL: publicUrlOf(settings),
      ...Object.fromEntries(addresses),
    },
  };
}

function forProcess(name: ProcessName, settings: Settings): Record<string, string> {
  return {
    ...settings.ofProcesses[name],
    HALYARD_MODE: settings.mode,
    HOST,
    // Cache of compiled modules. It shortens the start of a service by about a third.
    NODE_COMPILE_CACHE: join(settings.cacheDir, "node"),
    // These two reduce memory usage; deploy/docker/Dockerfile has the reason.
    NODE_OPTIONS: "--max-semi-space-size=8",
    MALLOC_ARENA_MAX: "1",
  };
}

/** Converts a secret of the home, which is base64url, to the base64 that the dispatcher expects. */
function inBase64(secret: string): string {
  return Buffer.from(secret, "base64url").toString("base64");
}

/** Start of an Ed25519 private key in PKCS#8. The seed of 32 bytes follows. */
const pkcs8Head = Buffer.from("302e020100300506032b657004220420", "hex");

/** Returns the key pair of a service that signs, as base64 of DER. */
function signingKeys(seed: string): { privateKey: string; publicKey: string } {
  const der = Buffer.concat([pkcs8Head, Buffer.from(seed, "base64url")]);
  const publicKey = createPublicKey(createPrivateKey({ key: der, format: "der", type: "pkcs8" }));
  const spki = publicKey.export({ format: "der", type: "spki" });
  return { privateKey: der.toString("base64"), publicKey: spki.toString("base64") };
}
