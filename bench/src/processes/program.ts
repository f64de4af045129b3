import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGuardedServer } from "@halyard/local-backends";
import type { Bench } from "../benchmark.ts";

/**
 * Starts a server that is not written in Node.js, on the core of the measured process. It ends with the benchmark, even
 * if that is killed. Its directory is then removed.
 */
export async function startProgram(
  bench: Bench,
  name: string,
  {
    program,
    environment = {},
  }: {
    program: (directory: string) => readonly string[];
    environment?: Readonly<Record<string, string>>;
  },
): Promise<{ pid: number; stop(): Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), `halyard-bench-${name}-`));
  const pin = bench.cores === undefined ? [] : ["taskset", "--cpu-list", bench.cores.server];
  const [command = "", ...args] = [...pin, ...program(directory)];
  const server = await startGuardedServer({
    ...{ command, args, workingDirectory: directory, throwawayDir: directory },
    logFile: join(directory, "log"),
    environment: { PATH: process.env.PATH, ...environment },
    stopSteps: [{ signal: "SIGKILL", timeoutMs: 1_000 }],
  });
  const stop = async () => void (await server.stop());
  bench.afterwards(async () => {
    await stop();
    rmSync(directory, { recursive: true, force: true });
  });
  return { pid: server.pid, stop };
}
