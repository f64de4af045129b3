import { createTestDatabase } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import { openDatabase } from "../src/index.ts";

/** Time-outs of the connections of a service. */

const store = await createTestDatabase();
const url = store.runtimeUrls.management;
const database = openDatabase({
  url,
  name: "test",
  maxConnections: 2,
  logger: pino({ level: "silent" }),
});
afterAll(async () => {
  await database.close();
  await store.drop();
});

describe("a connection of a service", () => {
  it.each(["statement_timeout", "idle_in_transaction_session_timeout"])(
    "has a %s of seconds",
    async (setting) => {
      const [row] = await database.sql<{ ms: number; source: string }[]>`
        select setting::integer as ms, source from pg_settings where name = ${setting}`;
      expect(row?.source).toBe("client");
      expect(row?.ms).toBeGreaterThanOrEqual(1_000);
      expect(row?.ms).toBeLessThanOrEqual(30_000);
    },
  );
});
