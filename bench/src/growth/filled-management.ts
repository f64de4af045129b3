import type { Sql } from "@halyard/postgres";
import type { Bench } from "../benchmark.ts";
import { type Nats, type Postgres, startNats, startPostgres } from "../system/backends.ts";
import { type Service, startManagement } from "../system/services.ts";
import { createTenant, type Tenant } from "../system/tenant.ts";
import { openManagementTables } from "./fill-tables.ts";

/** A database with a tenant and rows that were inserted into management's tables. */
export type FilledDatabase = { postgres: Postgres; tenant: Tenant };

type Contents = {
  /** Created through management's API. */
  flags: number;
  fill(sql: Sql, tenant: Tenant): Promise<void>;
};

export async function startFilledDatabase(
  bench: Bench,
  { flags, fill }: Contents,
): Promise<FilledDatabase> {
  const [nats, postgres] = await Promise.all([startNats(bench), startPostgres(bench)]);
  const management = await startManagement(bench, { postgres, nats, core: undefined });
  const tenant = await createTenant(management.url, flags);
  await management.child.stop();
  await nats.stop();
  await fill(openManagementTables(bench, postgres), tenant);
  return { postgres, tenant };
}

/** With an empty NATS, management writes the whole snapshot, including the inserted rows. */
export async function startFilledManagement(
  bench: Bench,
  contents: Contents,
): Promise<FilledDatabase & { nats: Nats; management: Service }> {
  const { postgres, tenant } = await startFilledDatabase(bench, contents);
  const nats = await startNats(bench);
  const management = await startManagement(bench, { postgres, nats, core: undefined });
  return { postgres, tenant, nats, management };
}
