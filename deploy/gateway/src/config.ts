import { listenVariables, portVariable, readEnvironment, variable } from "@halyard/configuration";
import { z } from "zod";
import type { Target } from "./route-table.ts";

const origins = z
  .string()
  .transform((text) => text.split(",").map((item) => URL.parse(item.trim())))
  .refine((urls): urls is URL[] => urls.every(isOrigin));

/** Accepts origins only: a path or a query would conflict with that of the request. */
function isOrigin(url: URL | null): url is URL {
  return url?.protocol === "http:" && url.pathname === "/" && url.search === "" && url.hash === "";
}

const upstreams = (of: string) =>
  variable(origins, {
    description: `URLs of ${of}.`,
    expects: "one or more origins such as http://127.0.0.1:3000, separated by commas",
  });

export const configSchema = z.object({
  ...listenVariables,
  PORT: portVariable(8080),
  PUBLIC_URL: variable(z.url().optional(), {
    description:
      "Address at which browsers open this installation. With the host `localhost`, page loads at 127.0.0.1 are redirected to it.",
    expects: "a URL",
  }),
  UPSTREAM_MANAGEMENT_URL: upstreams("management"),
  UPSTREAM_SCHEDULER_URL: upstreams("the schedulers"),
  UPSTREAM_SDK_EDGE_URL: upstreams("the edges"),
  UPSTREAM_USAGE_METERING_URL: upstreams("usage-metering"),
  UPSTREAM_WEBHOOK_DISPATCHER_URL: upstreams("the webhook dispatchers"),
  UPSTREAM_DASHBOARD_URL: upstreams("the dashboard"),
});

type Config = z.output<typeof configSchema> & {
  upstreams: Readonly<Record<Target, readonly URL[]>>;
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
      dashboard: read.UPSTREAM_DASHBOARD_URL,
    },
  };
}
