import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { haproxyConfiguration, haproxyVariables, serversByName } from "@halyard/gateway/haproxy";
import { mapTargets, type Target } from "@halyard/gateway/route-table";
import { findHaproxy, startLocalHaproxy } from "@halyard/local-backends";
import type { ServiceProcess } from "@halyard/testing";

export const cacheDir = join(import.meta.dirname, "../../../.cache");

/**
 * Starts HAProxy with the generated configuration. `upstreams` has the URLs of each service, separated by commas.
 * `byName` replaces those of the edges by a name, and the DNS servers of this machine by the given one.
 */
export async function startHaproxy(
  upstreams: Readonly<Record<Target, string>>,
  { PORT: port = "0", ...environment }: Readonly<Record<string, string>> = {},
  byName?: { name: string; dns: string },
): Promise<ServiceProcess> {
  const directory = mkdtempSync(join(tmpdir(), "halyard-haproxy-"));
  const logFile = `${directory}.log`;
  const addresses = mapTargets((target) => ({
    addresses: upstreams[target].split(",").map((url) => new URL(url).host),
  }));
  const named = { ...addresses, "sdk-edge": serversByName()["sdk-edge"] };
  const configuration = haproxyConfiguration(byName === undefined ? addresses : named).replace(
    "parse-resolv-conf",
    byName === undefined ? "parse-resolv-conf" : `nameserver test ${byName.dns}`,
  );
  const variables = {
    ...haproxyVariables(environment),
    ...(byName && { SDK_EDGE_ADDRESS: byName.name }),
  };
  const proxy = await startLocalHaproxy({
    binary: await findHaproxy({ cacheDir }),
    ...{ directory, logFile, configuration, environment: variables },
    ...{ port: Number(port), metricsPort: 0 },
  });
  const exited = proxy.exited.then(({ code, signal }) => signal ?? code ?? 0);
  void exited.then(() => rmSync(directory, { recursive: true, force: true }));
  return {
    url: proxy.url,
    metricsUrl: proxy.metricsUrl,
    pid: proxy.pid,
    log: () => readFileSync(logFile, "utf8"),
    signal: (name) => void process.kill(proxy.pid, name),
    exited,
    async stop() {
      await proxy.stop();
      return exited;
    },
    async kill() {
      if (!proxy.hasExited()) process.kill(proxy.pid, "SIGKILL");
      await exited;
      rmSync(logFile, { force: true });
    },
  };
}
