import type { ServiceName } from "@halyard/contracts";
import {
  hostVariable,
  logLevelVariable,
  metricsPortVariable,
  modeVariable,
  portVariable,
  readEnvironment,
  trustedProxiesVariable,
  variable,
} from "@halyard/service";
import { z } from "zod";

const upstreams = z
  .string()
  .transform((text) => text.split(",").map((item) => URL.parse(item.trim())))
  .refine((urls): urls is URL[] => urls.every(isUpstream));

/** Only an origin: a path or a query would have to be joined with the request's own. */
function isUpstream(url: URL | null): url is URL {
  return url?.protocol === "http:" && url.pathname === "/" && url.search === "" && url.hash === "";
}

const expects = "one or more origins such as http://127.0.0.1:3000, separated by commas";

export const configSchema = z.object({
  HALYARD_MODE: modeVariable,
  HOST: hostVariable,
  PORT: portVariable(8080),
  METRICS_PORT: metricsPortVariable,
  LOG_LEVEL: logLevelVariable,
  TRUSTED_PROXIES: trustedProxiesVariable,
  UPSTREAM_MANAGEMENT_URL: variable(upstreams, {
    description: "Where management is. Several are used in turn.",
    expects,
  }),
  UPSTREAM_SCHEDULER_URL: variable(upstreams, {
    description: "Where the schedulers are. Several are used in turn.",
    expects,
  }),
  UPSTREAM_SDK_EDGE_URL: variable(upstreams, {
    description: "Where the SDK edges are. Several are used in turn.",
    expects,
  }),
  UPSTREAM_USAGE_METERING_URL: variable(upstreams, {
    description: "Where usage metering is. Several are used in turn.",
    expects,
  }),
  UPSTREAM_WEBHOOK_DISPATCHER_URL: variable(upstreams, {
    description: "Where the webhook dispatchers are. Several are used in turn.",
    expects,
  }),
});

type Config = z.output<typeof configSchema> & {
  upstreams: Readonly<Record<ServiceName, readonly URL[]>>;
};

export function readConfig(): Config {
  const read = readEnvironment(configSchema, process.env);
  return {
    ...read,
    upstreams: {
      management: read.UPSTREAM_MANAGEMENT_URL,
      scheduler: read.UPSTREAM_SCHEDULER_URL,
      "sdk-edge": read.UPSTREAM_SDK_EDGE_URL,
      "usage-metering": read.UPSTREAM_USAGE_METERING_URL,
      "webhook-dispatcher": read.UPSTREAM_WEBHOOK_DISPATCHER_URL,
    },
  };
}
