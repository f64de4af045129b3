import type { Bench } from "../benchmark.ts";
import { nowMs } from "../clock.ts";
import { cpuMsOfTree } from "../processes/process-usage.ts";
import { startNats } from "../system/backends.ts";
import { isPublishing, launchManagement } from "../system/services.ts";
import { until } from "../until.ts";
import type { Curve, Side } from "./curve.ts";
import { insertFlags } from "./fill-tables.ts";
import { startFilledDatabase } from "./filled-management.ts";
import { serviceCpuMs } from "./service-cpu.ts";

const time = "time per entry";
const cpu = "CPU of management per entry";
const databaseCpu = "CPU of PostgreSQL per entry";
const timeoutMs = 120_000;

export const rebuildCurve: Curve = {
  name: "rebuild",
  summary: "rebuild of the snapshot in an empty NATS, by entries",
  method:
    "Management starts with an empty NATS and writes the whole snapshot. The time begins when the process listens.",
  of: "entries",
  sizes: [10_000, 100_000],
  quickSizes: [20, 100],
  rounds: 3,
  costs: [
    { what: time, unit: "µs" },
    { what: cpu, unit: "µs" },
    { what: databaseCpu, unit: "µs" },
  ],
  open: async (bench) => (entries) => prepare(bench, entries),
};

async function prepare(bench: Bench, entries: number): Promise<Side> {
  const { postgres } = await startFilledDatabase(bench, {
    flags: 0,
    fill: (sql, tenant) => insertFlags(sql, tenant, entries),
  });
  return {
    postgres,
    async measure() {
      const nats = await startNats(bench);
      const management = await launchManagement(bench, { postgres, nats, core: undefined });
      const [beganMs, databaseBeforeMs] = [nowMs(), cpuMsOfTree(postgres.pid)];
      await until("the snapshot is complete", () => isPublishing(management), timeoutMs);
      const perEntry = (usedMs: number) => (usedMs * 1e3) / entries;
      const sample = {
        [time]: perEntry(nowMs() - beganMs),
        [cpu]: perEntry(await serviceCpuMs(management)),
        [databaseCpu]: perEntry(cpuMsOfTree(postgres.pid) - databaseBeforeMs),
      };
      await management.child.stop();
      await nats.stop();
      return sample;
    },
  };
}
