import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { testBackends } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import postgres from "postgres";
import { migrate, provisionService, urlFor } from "../src/index.ts";

/** Unique names, because roles and databases belong to the whole server. */
const suffix = randomUUID().slice(0, 8);
const service = `provision_${suffix}`;
const creator = `creator_${suffix}`;
const database = `halyard_${suffix}`;
const migrations = fileURLToPath(new URL("./provision-migrations", import.meta.url));

const admin = postgres(testBackends().postgresAdminUrl, { max: 1, onnotice: () => undefined });
afterAll(async () => {
  // Not with force, because the connection of the migrations may still be closing, and would report an error.
  // PostgreSQL waits until it is closed.
  await admin`drop database if exists ${admin(database)}`;
  for (const role of [`${service}_service`, `${service}_owner`, creator])
    await admin`drop role if exists ${admin(role)}`;
  await admin.end();
});
await admin`create role ${admin(creator)} login createrole createdb password 'creator'`;

describe("given a role that may create roles and databases, but is not a superuser", () => {
  it("prepares a database that the owner can migrate, and can be repeated", async () => {
    const adminUrl = urlFor(testBackends().postgresAdminUrl, "postgres", creator, "creator");
    const options = {
      adminUrl,
      database,
      service,
      ownerPassword: "owner",
      runtimePassword: "runtime",
    };
    const first = await provisionService(options);
    expect(await provisionService(options)).toEqual(first);

    const migration = {
      ownerUrl: first.ownerUrl,
      schema: service,
      directory: migrations,
    };
    expect(await migrate(migration)).toEqual(["0001_things"]);
    const runtime = postgres(first.runtimeUrl, { max: 1, onnotice: () => undefined });
    try {
      await expect(runtime`create table others (id integer)`).rejects.toThrow("permission denied");
    } finally {
      await runtime.end();
    }
  });
});
