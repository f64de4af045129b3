import { findFreePort } from "@halyard/local-backends";
import type { Bench } from "../benchmark.ts";
import type { Target } from "../http/load.ts";
import { startProgram } from "../processes/program.ts";
import { until } from "../time.ts";

/**
 * Starts Unleash Edge as its documentation recommends for production: in the mode `edge`, with a token for its first copy
 * of the flags, and with as many workers as it has cores. It logs errors only.
 */
export async function startUnleashEdge(
  bench: Bench,
  path: string,
  { url: upstream, backendToken }: { url: string; backendToken: string },
): Promise<Target> {
  const host = "127.0.0.1";
  const port = await findFreePort(host);
  const server = await startProgram(bench, "unleash-edge", {
    program: () => [
      ...[path, "--interface", host, "--port", String(port), "--workers", "1"],
      ...["edge", "--upstream-url", upstream, "--tokens", backendToken],
    ],
    environment: { RUST_LOG: "error" },
  });
  const url = `http://${host}:${port}`;
  await until("Unleash Edge has its first copy of the flags", async () => {
    const response = await fetch(`${url}/internal-backstage/ready`).catch(() => undefined);
    await response?.arrayBuffer();
    return response?.status === 200;
  });
  return { url, ...server };
}
