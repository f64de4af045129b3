import type { Bench } from "../benchmark.ts";
import { type Load, type LoadResult, type RequestPlan, startLoad } from "../http/load.ts";
import { type Nats, type Postgres, startNats, startPostgres } from "../system/backends.ts";
import { type Service, startManagement } from "../system/services.ts";
import { createTenant, type Tenant } from "../system/tenant.ts";

/** Management over a project with many flags, and clients that flip one flag after the other. */
export type ChangingSystem = {
  nats: Nats;
  postgres: Postgres;
  management: Service;
  tenant: Tenant;
  change(options: { measureMs: number; alsoWatch?: readonly Service[] }): Promise<LoadResult>;
  /** Another process in management's place. */
  restartManagement(): Promise<void>;
};

export const clients = 32;
const flags = 1_000;
const quickFlags = 50;

export async function startChangingSystem(
  bench: Bench,
  nodeOptions: readonly string[] = [],
): Promise<ChangingSystem> {
  const [nats, postgres] = await Promise.all([startNats(bench), startPostgres(bench)]);
  const start = () => startManagement(bench, { postgres, nats, core: undefined, nodeOptions });
  let management = await start();
  const tenant = await createTenant(management.url, bench.quick ? quickFlags : flags);
  const load: Load = await startLoad(bench);
  const requests = flips(tenant);
  return {
    nats,
    postgres,
    tenant,
    get management() {
      return management;
    },
    change: ({ measureMs, alsoWatch = [] }) =>
      load.run({
        url: management.url,
        connections: clients,
        measureMs,
        requests,
        expectedStatus: 200,
        watch: [
          { pid: management.child.pid },
          { pid: postgres.pid, tree: true },
          { pid: nats.pid },
          ...alsoWatch.map(({ child }) => ({ pid: child.pid })),
        ],
      }),
    async restartManagement() {
      await management.child.stop();
      management = await start();
    },
  };
}

/** All flags on, then all off: whichever comes next, it is a change. */
function flips({ serverKey, flagIds }: Tenant): RequestPlan[] {
  return [true, false].flatMap((enabled) =>
    flagIds.map((id) => ({
      method: "PATCH",
      path: `/api/v1/flags/${id}`,
      headers: { Authorization: `Bearer ${serverKey}`, "Content-Type": "application/json" },
      body: JSON.stringify({ enabled }),
    })),
  );
}
