import type { Bench } from "../benchmark.ts";
import { nowMs } from "../clock.ts";
import { peakResidentBytes } from "../processes/process-usage.ts";
import { startNats, startPostgres } from "../system/backends.ts";
import { startManagement } from "../system/services.ts";
import { createTenant } from "../system/tenant.ts";
import type { Curve, Side } from "./curve.ts";
import { insertFlags, openManagementTables } from "./fill-tables.ts";
import { serviceCpuMs } from "./service-cpu.ts";

const time = "time per flag";
const cpu = "CPU of management per flag";
const peak = "peak resident memory of management";
/** Total number of listed flags at each size. */
const listedFlags = 100_000;

export const flagListCurve: Curve = {
  name: "flag-list",
  summary: "the list of a project's flags without paging, by flags",
  method: "One client sends `GET /api/v1/flags` without `limit`.",
  of: "flags",
  sizes: [1_000, 100_000],
  quickSizes: [10, 50],
  rounds: 2,
  costs: [
    { what: time, unit: "µs" },
    { what: cpu, unit: "µs" },
    { what: peak, unit: "MB" },
  ],
  notes: ["Each round starts another process of management."],
  open: async (bench) => (flags) => prepare(bench, flags),
};

async function prepare(bench: Bench, flags: number): Promise<Side> {
  const [nats, postgres] = await Promise.all([startNats(bench), startPostgres(bench)]);
  const start = () => startManagement(bench, { postgres, nats, core: undefined });
  const first = await start();
  const tenant = await createTenant(first.url, 0);
  // The list does not read the snapshot, which does not contain these flags.
  await insertFlags(openManagementTables(bench, postgres), tenant, flags);
  await first.child.stop();
  const lists = bench.quick ? 1 : listedFlags / flags;
  return {
    nats,
    postgres,
    async measure() {
      const management = await start();
      const list = () => readList(`${management.url}/api/v1/flags`, tenant.serverKey);
      await list();
      const [beganMs, beforeMs] = [nowMs(), await serviceCpuMs(management)];
      for (let count = 0; count < lists; count += 1) await list();
      const perFlag = (usedMs: number) => (usedMs * 1e3) / (lists * flags);
      const sample = {
        [time]: perFlag(nowMs() - beganMs),
        [cpu]: perFlag((await serviceCpuMs(management)) - beforeMs),
        [peak]: peakResidentBytes(management.child.pid) / 1e6,
      };
      await management.child.stop();
      return sample;
    },
  };
}

async function readList(url: string, key: string): Promise<void> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
  const body = await response.arrayBuffer();
  if (response.status !== 200) throw new Error(`GET ${url}: ${response.status} ${body}`);
}
