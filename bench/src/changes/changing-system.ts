import type { Bench } from "../benchmark.ts";
import { type Load, type LoadResult, startLoad } from "../http/load.ts";
import { type Nats, type Postgres, startNats, startPostgres } from "../system/backends.ts";
import { type Service, startManagement } from "../system/services.ts";
import { createTenant, type Tenant } from "../system/tenant.ts";
import { toggles } from "../system/toggles.ts";

/** Management with a project of many flags, and clients that toggle one flag after the other. */
export type ChangingSystem = {
  nats: Nats;
  postgres: Postgres;
  management: Service;
  tenant: Tenant;
  change(options: {
    measureMs: number;
    connections?: number;
    alsoWatch?: readonly number[];
  }): Promise<LoadResult>;
  /** Returns the sum of a metric of management over its labels. */
  readMetric(name: string): Promise<number>;
  /** Replaces the management process. */
  restartManagement(): Promise<void>;
};

export const clients = 32;
const flags = 1_000;
const quickFlags = 50;

export async function startChangingSystem(bench: Bench): Promise<ChangingSystem> {
  const [nats, postgres] = await Promise.all([startNats(bench), startPostgres(bench)]);
  const start = () => startManagement(bench, { postgres, nats, core: undefined });
  let management = await start();
  const tenant = await createTenant(management.url, bench.quick ? quickFlags : flags);
  const load: Load = await startLoad(bench);
  const requests = toggles(tenant);
  return {
    nats,
    postgres,
    tenant,
    get management() {
      return management;
    },
    change: ({ measureMs, connections = clients, alsoWatch = [] }) =>
      load.run({
        url: management.url,
        connections,
        measureMs,
        requests,
        expectedStatus: 200,
        watch: [
          { pid: management.child.pid },
          { pid: postgres.pid, tree: true },
          { pid: nats.pid },
          ...alsoWatch.map((pid) => ({ pid })),
        ],
      }),
    async readMetric(name) {
      const text = await (await fetch(`${management.metricsUrl}/metrics`)).text();
      const values = text.split("\n").filter((line) => line.startsWith(`${name}{`));
      return values.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
    },
    async restartManagement() {
      await management.child.stop();
      management = await start();
    },
  };
}
