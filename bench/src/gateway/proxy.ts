import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { haproxyConfiguration } from "@halyard/gateway/haproxy";
import { mapTargets } from "@halyard/gateway/route-table";
import { findFreePort, findHaproxy, libraryVariables } from "@halyard/local-backends";
import type { Bench } from "../benchmark.ts";
import type { Target } from "../http/load.ts";
import { cacheDir } from "../project-root.ts";
import { until } from "../time.ts";

const host = "127.0.0.1";

/** Starts HAProxy with the configuration of installations, on the core of the edge behind it. */
export async function startProxy(bench: Bench, edgeUrl: string): Promise<Target> {
  const binary = await findHaproxy({ cacheDir });
  const directory = mkdtempSync(join(tmpdir(), "halyard-bench-haproxy-"));
  const edge = new URL(edgeUrl).host;
  const file = join(directory, "haproxy.cfg");
  // No process listens on port 9.
  const servers = mapTargets((target) => ({
    addresses: [target === "sdk-edge" ? edge : `${host}:9`],
  }));
  writeFileSync(file, haproxyConfiguration(servers));
  const port = await findFreePort(host);
  const pin = bench.cores === undefined ? [] : ["taskset", "--cpu-list", bench.cores.server];
  const [command = "", ...args] = [...pin, binary, "-db", "-f", file];
  const child = spawn(command, args, {
    env: {
      ...libraryVariables(binary),
      PATH: process.env.PATH,
      HOST: host,
      PORT: String(port),
      // The streams come from one address.
      MAX_CONNECTIONS_PER_ADDRESS: "9000",
      METRICS_PORT: String(await findFreePort(host)),
    },
    stdio: "ignore",
  });
  const exited = once(child, "exit");
  const stop = async () => {
    child.kill("SIGKILL");
    await exited;
    rmSync(directory, { recursive: true, force: true });
  };
  bench.afterwards(stop);
  const url = `http://${host}:${port}`;
  await until("HAProxy has found the edge", async () => {
    const response = await fetch(`${url}/api/v1/sdk/flags`).catch(() => undefined);
    await response?.arrayBuffer();
    return response?.status === 401;
  });
  return { url, pid: child.pid as number, stop };
}
