import { createHash } from "node:crypto";
import { join } from "node:path";
import type { NatsUser } from "@halyard/contracts";
import type { Settings } from "./config.ts";
import type { Credentials } from "./credentials.ts";
import type { DatabaseUrls, OwnerOfSchema } from "./database.ts";
import { exampleIdsFileIn } from "./example-ids-file.ts";
import type { ServicePlan } from "./service-process.ts";
import { signingSettings } from "./signing-settings.ts";

export const HOST = "127.0.0.1";

/** The gateway is the only one that others reach the services through, and it is on this machine. */
const TRUSTED_PROXIES = "127.0.0.1";

/**
 * Each service gets only what it needs: only those that have a schema know the database, each as a role
 * of its own; only management has the operator's token, the others have its digest; only edges have the secret of their streams'
 * tokens, only the dispatcher knows what the secrets of webhooks are encrypted with. Management comes first.
 */
export function planServices(options: {
  settings: Settings;
  natsUrl: string;
  natsPasswords: Credentials["nats_passwords"];
  databaseUrls: DatabaseUrls;
  operatorToken: string;
  streamTokenSecret: string;
  webhookSecretKey: string;
  signingSeed: string;
  migrate: (service: OwnerOfSchema) => Promise<void>;
}): [ServicePlan, ...ServicePlan[]] {
  const { settings, natsUrl, databaseUrls } = options;
  const signing = signingSettings(options.signingSeed);
  const shared = {
    ...forEveryProcess(settings),
    NATS_URL: natsUrl,
    TRUSTED_PROXIES,
    ...signing.readers,
    OPERATOR_TOKEN_DIGEST: createHash("sha256").update(options.operatorToken).digest("hex"),
  };
  /** For an external NATS server, the login comes from the environment. */
  const login = (user: NatsUser) =>
    settings.natsUrl === undefined
      ? { NATS_USER: user, NATS_PASSWORD: options.natsPasswords[user] }
      : settings.natsLogin;
  return [
    {
      name: "management",
      program: "services/management/src/main.ts",
      port: 0,
      prepare: () => options.migrate("management"),
      environment: {
        ...shared,
        ...login("management"),
        POSTGRES_URL: databaseUrls.management.runtimeUrl,
        OPERATOR_TOKEN: options.operatorToken,
        ...signing.management,
        ...settings.ofServices.management,
      },
    },
    {
      name: "scheduler",
      program: "services/scheduler/src/main.ts",
      port: 0,
      prepare: () => options.migrate("scheduler"),
      environment: {
        ...shared,
        ...login("scheduler"),
        POSTGRES_URL: databaseUrls.scheduler.runtimeUrl,
        ...settings.ofServices.scheduler,
      },
    },
    {
      name: "sdk-edge",
      program: "services/sdk-edge/src/main.ts",
      port: 0,
      environment: {
        ...shared,
        ...login("sdk-edge"),
        SNAPSHOT_CACHE_FILE: join(settings.home, "sdk-edge/snapshot-cache"),
        STREAM_TOKEN_SECRET: options.streamTokenSecret,
        ...settings.ofServices["sdk-edge"],
      },
    },
    {
      name: "usage-metering",
      program: "services/usage-metering/src/main.ts",
      port: 0,
      prepare: () => options.migrate("usage-metering"),
      environment: {
        ...shared,
        ...login("usage-metering"),
        POSTGRES_URL: databaseUrls["usage-metering"].runtimeUrl,
        ...settings.ofServices["usage-metering"],
      },
    },
    {
      name: "webhook-dispatcher",
      program: "services/webhook-dispatcher/src/main.ts",
      port: 0,
      prepare: () => options.migrate("webhook-dispatcher"),
      environment: {
        ...shared,
        ...login("webhook-dispatcher"),
        POSTGRES_URL: databaseUrls["webhook-dispatcher"].runtimeUrl,
        WEBHOOK_SECRET_KEYS: `local:${inBase64(options.webhookSecretKey)}`,
        // Who tries things out has the receiver on the same machine.
        WEBHOOK_ALLOW_PRIVATE_TARGETS: String(settings.mode !== "production"),
        ...settings.ofServices["webhook-dispatcher"],
      },
    },
  ];
}

export function planGateway(settings: Settings, upstreams: Record<string, string>): ServicePlan {
  return {
    name: "gateway",
    program: "deploy/gateway/src/main.ts",
    port: settings.port,
    environment: {
      ...forEveryProcess(settings),
      ...(settings.mode === "production"
        ? {}
        : { EXAMPLE_IDS_FILE: exampleIdsFileIn(settings.home) }),
      UPSTREAM_MANAGEMENT_URL: upstreams.management ?? "",
      UPSTREAM_SCHEDULER_URL: upstreams.scheduler ?? "",
      UPSTREAM_SDK_EDGE_URL: upstreams["sdk-edge"] ?? "",
      UPSTREAM_USAGE_METERING_URL: upstreams["usage-metering"] ?? "",
      UPSTREAM_WEBHOOK_DISPATCHER_URL: upstreams["webhook-dispatcher"] ?? "",
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
  };
}

/** As the dispatcher wants its keys; the home keeps all its secrets as base64url. */
function inBase64(secret: string): string {
  return Buffer.from(secret, "base64url").toString("base64");
}
