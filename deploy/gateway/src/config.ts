import { join } from "node:path";
import {
  hostVariable,
  logLevelVariable,
  metricsPortVariable,
  modeVariable,
  portVariable,
  readEnvironment,
  trustedProxiesVariable,
  variable,
} from "@halyard/configuration";
import type { ServiceName } from "@halyard/contracts";
import { z } from "zod";
import type { GatewayLimits } from "./gateway.ts";
import { defaultMaxConnections } from "./open-files.ts";

const upstreams = z
  .string()
  .transform((text) => text.split(",").map((item) => URL.parse(item.trim())))
  .refine((urls): urls is URL[] => urls.every(isUpstream));

/** Accepts origins only: a path or a query would conflict with that of the request. */
function isUpstream(url: URL | null): url is URL {
  return url?.protocol === "http:" && url.pathname === "/" && url.search === "" && url.hash === "";
}

const expects = "one or more origins such as http://127.0.0.1:3000, separated by commas";

const count = z
  .string()
  .regex(/^\d{1,7}$/)
  .transform(Number)
  .pipe(z.int().min(1));

/** Requests that may wait for each service: a burst of reconnecting streams fits. */
const waitingRequests = 4_096;

const expectsCount = "a whole number from 1";

/** The folder into which `npm run build --workspace services/dashboard` and the image build the dashboard. */
const builtDashboard = join(import.meta.dirname, "../../../services/dashboard/dist");

export const configSchema = z.object({
  HALYARD_MODE: modeVariable,
  HOST: hostVariable,
  PORT: portVariable(8080),
  METRICS_PORT: metricsPortVariable,
  LOG_LEVEL: logLevelVariable,
  TRUSTED_PROXIES: trustedProxiesVariable,
  MAX_CONNECTIONS: variable(count.optional(), {
    description:
      "Maximum number of client connections, including open streams. Beyond it, a new connection replaces the longest idle connection, or is closed.",
    expects: expectsCount,
    documentedDefault: "10000, or a third of the open file limit if that is less",
  }),
  MAX_CONNECTIONS_PER_ADDRESS: variable(count.optional(), {
    description:
      "The same limit for each client address or IPv6 /64. `TRUSTED_PROXIES` are exempt.",
    expects: expectsCount,
    documentedDefault: "half of `MAX_CONNECTIONS`",
  }),
  MAX_REQUESTS_PER_UPSTREAM: variable(count.default(256), {
    description:
      "Maximum number of concurrent requests to one process of a service, without open streams. Further requests wait for up to 10 s, then get 503.",
    expects: expectsCount,
  }),
  EXAMPLE_IDS_FILE: variable(z.string().optional(), {
    description:
      "JSON file with the ids that `/openapi.json` shows as examples. `npm start` sets it. The file may be missing.",
    expects: "the path of a file",
    documentedDefault: "placeholders",
  }),
  DASHBOARD_DIR: variable(z.string().default(builtDashboard), {
    description:
      "Folder of the built dashboard. Without one, browsers are redirected from `/` to `/docs`.",
    expects: "the path of a directory",
    documentedDefault: "`services/dashboard/dist` of this installation",
  }),
  SIGN_IN_FILE: variable(z.string().optional(), {
    description:
      "JSON file with a one-time code for the dashboard. `npm start` sets it. The file may be missing.",
    expects: "the path of a file",
  }),
  UPSTREAM_MANAGEMENT_URL: variable(upstreams, {
    description: "URLs of management.",
    expects,
  }),
  UPSTREAM_SCHEDULER_URL: variable(upstreams, {
    description: "URLs of the schedulers.",
    expects,
  }),
  UPSTREAM_SDK_EDGE_URL: variable(upstreams, {
    description: "URLs of the edges.",
    expects,
  }),
  UPSTREAM_USAGE_METERING_URL: variable(upstreams, {
    description: "URLs of usage-metering.",
    expects,
  }),
  UPSTREAM_WEBHOOK_DISPATCHER_URL: variable(upstreams, {
    description: "URLs of the webhook dispatchers.",
    expects,
  }),
});

type Config = z.output<typeof configSchema> & {
  upstreams: Readonly<Record<ServiceName, readonly URL[]>>;
  limits: GatewayLimits;
};

export function readConfig(): Config {
  const read = readEnvironment(configSchema, process.env);
  const connections = read.MAX_CONNECTIONS ?? defaultMaxConnections();
  return {
    ...read,
    limits: {
      connections,
      connectionsPerAddress: read.MAX_CONNECTIONS_PER_ADDRESS ?? Math.ceil(connections / 2),
      requestsPerUpstream: read.MAX_REQUESTS_PER_UPSTREAM,
      waitingRequests,
    },
    upstreams: {
      management: read.UPSTREAM_MANAGEMENT_URL,
      scheduler: read.UPSTREAM_SCHEDULER_URL,
      "sdk-edge": read.UPSTREAM_SDK_EDGE_URL,
      "usage-metering": read.UPSTREAM_USAGE_METERING_URL,
      "webhook-dispatcher": read.UPSTREAM_WEBHOOK_DISPATCHER_URL,
    },
  };
}
