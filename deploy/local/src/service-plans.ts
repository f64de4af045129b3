import { join } from "node:path";
import type { Settings } from "./config.ts";
import type { ServicePlan } from "./service-process.ts";

export const HOST = "127.0.0.1";

/** The gateway is the only one that others reach the services through, and it is on this machine. */
const TRUSTED_PROXIES = "127.0.0.1";

/** Each service gets only what it needs: only management knows the database and the operator. */
export function planServices(options: {
  settings: Settings;
  natsUrl: string;
  runtimeUrl: string;
  operatorToken: string;
  migrate: () => Promise<void>;
}): ServicePlan[] {
  const { settings, natsUrl } = options;
  const shared = { ...forEveryProcess(settings), NATS_URL: natsUrl, TRUSTED_PROXIES };
  return [
    {
      name: "management",
      program: "services/management/src/main.ts",
      port: 0,
      prepare: options.migrate,
      environment: {
        ...shared,
        POSTGRES_URL: options.runtimeUrl,
        OPERATOR_TOKEN: options.operatorToken,
      },
    },
    {
      name: "sdk-edge",
      program: "services/sdk-edge/src/main.ts",
      port: 0,
      environment: {
        ...shared,
        SNAPSHOT_CACHE_FILE: join(settings.home, "sdk-edge/snapshot-cache"),
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
      UPSTREAM_MANAGEMENT_URL: upstreams.management ?? "",
      UPSTREAM_SDK_EDGE_URL: upstreams["sdk-edge"] ?? "",
    },
  };
}

function forEveryProcess(settings: Settings): Record<string, string> {
  return {
    HALYARD_MODE: settings.mode,
    HOST,
    METRICS_PORT: "0",
    LOG_LEVEL: settings.logLevel,
    // Node keeps compiled modules here, which takes about a third off the start of a service.
    NODE_COMPILE_CACHE: join(settings.cacheDir, "node"),
  };
}
