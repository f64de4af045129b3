import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { testBackends } from "@halyard/testing";
import { afterAll, expect, it } from "@jest/globals";
import postgres from "postgres";
import { migrate, provisionService, urlFor } from "../src/index.ts";

/** Unique names, because roles and databases belong to the whole server. */
const suffix = randomUUID().slice(0, 8);
const service = `moved_${suffix}`;
const database = `halyard_${suffix}`;
const former = `${service}_runtime`;
const directory = fileURLToPath(new URL("./provision-migrations", import.meta.url));

const admin = postgres(testBackends().postgresAdminUrl, { max: 1, onnotice: () => undefined });
afterAll(async () => {
  await admin`drop database if exists ${admin(database)}`;
  for (const role of [former, `${service}_service`, `${service}_owner`])
    await admin`drop role if exists ${admin(role)}`;
  await admin.end();
});
await admin`create role ${admin(former)} login password 'former'`;

it("a migration moves the rights on tables, columns and functions from the role of release 0.1", async () => {
  const { postgresAdminUrl: adminUrl } = testBackends();
  const given = { adminUrl, database, service, ownerPassword: "owner", runtimePassword: "service" };
  const { ownerUrl, runtimeUrl } = await provisionService(given);
  const owner = postgres(ownerUrl, { max: 1, onnotice: () => undefined });
  await owner.unsafe(`
    create table items (id integer, name text);
    insert into items values (1, 'one');
    create function answer() returns integer language sql as 'select 42';
    revoke execute on function answer() from public;
    grant usage on schema ${service} to ${former};
    grant select on items to ${former};
    grant update (name) on items to ${former};
    grant execute on function answer() to ${former}`);
  await owner.end();
  const formerUrl = urlFor(adminUrl, database, former, "former");
  // A process of the release that was not stopped has used its rights on this connection.
  const forgotten = postgres(formerUrl, { max: 1 });
  const present = postgres(runtimeUrl, { max: 1 });
  try {
    const schema = present(service);
    const rename = (sql: postgres.Sql) => sql`
      update ${schema}.items set name = 'two' returning ${schema}.answer()`;
    expect(await rename(forgotten)).toEqual([{ answer: 42 }]);

    const migration = { ownerUrl, schema: service, directory };
    expect(await migrate(migration)).toEqual(["0001_things"]);
    expect(await migrate(migration)).toEqual([]);

    await expect(rename(forgotten)).rejects.toThrow("permission denied");
    expect(await rename(present)).toEqual([{ answer: 42 }]);
    await expect(present`update ${schema}.items set id = 2`).rejects.toThrow("permission denied");
  } finally {
    await Promise.all([forgotten.end(), present.end()]);
  }
});
