import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { findFreePort } from "@halyard/local-backends";
import type { Bench } from "../benchmark.ts";
import type { Target } from "../http/load.ts";
import { startProgram } from "../processes/program.ts";
import type { AnyFlag } from "../targeting/targeted-flags.ts";
import { until } from "../time.ts";
import { flagdFlag } from "./flagd-flag.ts";
import { goFeatureFlag } from "./go-feature-flag.ts";

const host = "127.0.0.1";

/** Starts GO Feature Flag's relay proxy with its defaults, a file of flags, and errors in its log. */
export function startRelayProxy(
  bench: Bench,
  path: string,
  flags: readonly AnyFlag[],
): Promise<Target> {
  return startServer(bench, "go-feature-flag", {
    ready: "/health",
    program(directory, port) {
      const flagsFile = writeJson(directory, "flags", byKey(flags, goFeatureFlag));
      const configuration = writeJson(directory, "goff-proxy", {
        ...{ server: { mode: "http", host, port }, logLevel: "ERROR", hideBanner: true },
        ...{ fileFormat: "json", retrievers: [{ kind: "file", path: flagsFile }] },
      });
      return [path, "--config", configuration];
    },
  });
}

/** Starts the server in `bench/peers/flagd`. */
export function startFlagd(bench: Bench, path: string, flags: readonly AnyFlag[]): Promise<Target> {
  return startServer(bench, "flagd", {
    ready: "/",
    program: (directory, port) => [
      ...[path, `${host}:${port}`],
      writeJson(directory, "flags", { flags: byKey(flags, flagdFlag) }),
    ],
  });
}

const byKey = (flags: readonly AnyFlag[], toPeer: (flag: AnyFlag) => object) =>
  Object.fromEntries(flags.map((flag) => [flag.key, toPeer(flag)]));

function writeJson(directory: string, name: string, content: object): string {
  const file = join(directory, `${name}.json`);
  writeFileSync(file, JSON.stringify(content));
  return file;
}

type Server = {
  program(directory: string, port: number): readonly string[];
  /** A path with a response as soon as the server has its flags. */
  ready: string;
};

async function startServer(
  bench: Bench,
  name: string,
  { program, ready }: Server,
): Promise<Target> {
  const port = await findFreePort(host);
  const server = await startProgram(bench, name, {
    program: (directory) => program(directory, port),
  });
  const url = `http://${host}:${port}`;
  await until(`${name} is ready`, async () => {
    const response = await fetch(url + ready);
    await response.arrayBuffer();
    return response.status < 500;
  });
  return { url, ...server };
}
