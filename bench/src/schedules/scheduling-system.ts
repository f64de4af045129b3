import type { Sql } from "@halyard/postgres";
import postgres from "postgres";
import type { Bench } from "../benchmark.ts";
import { type Nats, type Postgres, startNats, startPostgres } from "../system/backends.ts";
import {
  awaitReady,
  type Service,
  startAnotherManagement,
  startEdge,
  startManagement,
  startScheduler,
} from "../system/services.ts";
import { createTenant, type Tenant } from "../system/tenant.ts";
import { type FlagStream, openFlagStream } from "./flag-stream.ts";

/** All services of scheduled changes, with one project of many flags. */
export type SchedulingSystem = {
  nats: Nats;
  postgres: Postgres;
  tenant: Tenant;
  managements: readonly Service[];
  schedulers: readonly Service[];
  edges: readonly Service[];
  /** One stream on each edge. */
  streams: readonly FlagStream[];
  /** Connects as a superuser to the scheduler's schema. */
  admin: Sql;
  /** Starts another scheduler and another management process. */
  addReplicas(): Promise<void>;
};

const edges = 2;

export async function startSchedulingSystem(
  bench: Bench,
  { flags }: { flags: number },
): Promise<SchedulingSystem> {
  const [nats, database] = await Promise.all([startNats(bench), startPostgres(bench)]);
  const backends = { postgres: database, nats, core: undefined };
  const [management, scheduler, ...following] = await Promise.all([
    startManagement(bench, backends),
    startScheduler(bench, backends),
    ...Array.from({ length: edges }, () =>
      startEdge(bench, { natsUrl: nats.url, core: undefined }),
    ),
  ]);
  const managements = [management];
  const schedulers = [scheduler];
  const tenant = await createTenant(management.url, flags);
  await Promise.all([...schedulers, ...following].map(awaitReady));
  const streams = await Promise.all(
    following.map(({ url }) => openFlagStream(bench, { url, key: tenant.clientKey })),
  );
  return {
    nats,
    postgres: database,
    tenant,
    managements,
    schedulers,
    edges: following,
    streams,
    admin: openAdmin(bench, database),
    async addReplicas() {
      const [management, scheduler] = await Promise.all([
        startAnotherManagement(bench, backends),
        startScheduler(bench, backends),
      ]);
      await awaitReady(scheduler);
      managements.push(management);
      schedulers.push(scheduler);
    },
  };
}

function openAdmin(bench: Bench, { adminUrl }: Postgres): Sql {
  const sql = postgres(adminUrl, {
    max: 1,
    onnotice: () => undefined,
    connection: { search_path: "scheduler" },
  });
  bench.afterwards(() => sql.end());
  return sql as unknown as Sql;
}
