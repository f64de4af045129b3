import { join } from "node:path";
import { haproxyConfiguration, haproxyVariables } from "@halyard/gateway/haproxy";
import { mapTargets, type Target } from "@halyard/gateway/route-table";
import { startLocalHaproxy } from "@halyard/local-backends";
import { publicUrlOf, type Settings } from "./config.ts";
import type { ServiceProcess } from "./service-process.ts";

/** Starts HAProxy as the gateway, with the configuration that installations use. It takes over the previous ports. */
export async function startProxy(
  binary: string,
  options: {
    settings: Settings;
    logsDir: string;
    upstreams: Readonly<Record<Target, string>>;
    previous: ServiceProcess | undefined;
  },
): Promise<ServiceProcess> {
  const { settings, upstreams, previous } = options;
  const portOf = (url = "") => Number(URL.parse(url)?.port ?? 0);
  const proxy = await startLocalHaproxy({
    binary,
    directory: join(settings.home, "haproxy"),
    logFile: join(options.logsDir, "gateway.log"),
    configuration: haproxyConfiguration(
      mapTargets((target) => ({ addresses: [new URL(upstreams[target]).host] })),
    ),
    port: portOf(previous?.url) || settings.port,
    metricsPort: portOf(previous?.metricsUrl),
    environment: {
      ...haproxyVariables(settings.ofProcesses.gateway),
      PUBLIC_URL: new URL(publicUrlOf(settings)).origin,
    },
  });
  return { ...proxy, name: "gateway" };
}
