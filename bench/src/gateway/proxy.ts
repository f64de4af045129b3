import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { haproxyConfiguration } from "@halyard/gateway/haproxy";
import { mapTargets } from "@halyard/gateway/route-table";
import { findFreePort, findHaproxy, libraryVariables } from "@halyard/local-backends";
import type { Bench } from "../benchmark.ts";
import type { Target } from "../http/load.ts";
import { startProgram } from "../processes/program.ts";
import { cacheDir } from "../project-root.ts";
import { until } from "../time.ts";

const host = "127.0.0.1";

/** Starts HAProxy with the configuration of installations, on the core of the edge behind it. */
export function startProxy(bench: Bench, edge: Target): Promise<Target> {
  // No process listens on port 9.
  const servers = mapTargets((target) => ({
    addresses: [target === "sdk-edge" ? new URL(edge.url).host : `${host}:9`],
  }));
  const configuration = haproxyConfiguration(servers);
  return startHaproxy(bench, edge, { configuration, path: "/api/v1/sdk/flags" });
}

/** The least that Unleash Edge needs: it does not protect its internal paths itself. */
const plainConfiguration = (edge: Target) => `defaults
  mode http
  timeout connect 1s
  timeout client 72s
  timeout server 12s
  http-reuse always

frontend public
  bind "\${HOST}:\${PORT}"
  http-request deny if { path_beg /internal-backstage }
  default_backend edge

backend edge
  server edge ${new URL(edge.url).host}
`;

/** Starts the same HAProxy with a plain configuration in front of Unleash Edge. */
export function startPlainProxy(bench: Bench, edge: Target): Promise<Target> {
  return startHaproxy(bench, edge, {
    ...{ configuration: plainConfiguration(edge), path: "/api/frontend" },
  });
}

async function startHaproxy(
  bench: Bench,
  edge: Target,
  { configuration, path }: { configuration: string; path: string },
): Promise<Target> {
  const binary = await findHaproxy({ cacheDir });
  const port = await findFreePort(host);
  const server = await startProgram(bench, "haproxy", {
    program(directory) {
      const file = join(directory, "haproxy.cfg");
      writeFileSync(file, configuration);
      return [binary, "-db", "-f", file];
    },
    environment: {
      ...libraryVariables(binary),
      HOST: host,
      PORT: String(port),
      // The streams come from one address.
      MAX_CONNECTIONS_PER_ADDRESS: "9000",
      METRICS_PORT: String(await findFreePort(host)),
    },
  });
  const url = `http://${host}:${port}`;
  await until("HAProxy has found the edge", async () => {
    const response = await fetch(url + path).catch(() => undefined);
    await response?.arrayBuffer();
    // The edge misses a key. Without the edge, HAProxy responds with 503.
    return response !== undefined && response.status < 500;
  });
  return { url, ...server, behind: edge };
}
