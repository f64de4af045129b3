import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import type { CpuProfile } from "./cpu-profile.ts";

/** Sampling interval: resolves functions of a microsecond over a few seconds at a low cost. */
const samplingIntervalMicroseconds = 200;

/** Processes started with `nodeOptions` write a CPU profile when they exit. */
export function profilingInto(bench: Bench): {
  nodeOptions: readonly string[];
  read(pid: number): CpuProfile;
} {
  const directory = mkdtempSync(join(tmpdir(), "halyard-bench-profile-"));
  bench.afterwards(async () => rmSync(directory, { recursive: true, force: true }));
  return {
    nodeOptions: [
      "--cpu-prof",
      `--cpu-prof-dir=${directory}`,
      // biome-ignore lint/suspicious/noTemplateCurlyInString: Node fills in the process id itself.
      "--cpu-prof-name=${pid}.cpuprofile",
      `--cpu-prof-interval=${samplingIntervalMicroseconds}`,
    ],
    read: (pid) =>
      JSON.parse(readFileSync(join(directory, `${pid}.cpuprofile`), "utf8")) as CpuProfile,
  };
}
