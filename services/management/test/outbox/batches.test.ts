import { randomUUID } from "node:crypto";
import { connectPostgres } from "@halyard/postgres";
import { createTestDatabase, eventually } from "@halyard/testing";
import { pause } from "@halyard/timing";
import { afterAll, beforeEach, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import { v7 as uuidv7 } from "uuid";
import { startBatches } from "../../src/outbox/batches.ts";
import { createWriter } from "../../src/outbox/write.ts";
import { eventRow, flagRow, insertRows } from "../publishing/relay-fixture.ts";

const logger = pino({ level: "silent" });
const database = await createTestDatabase();
const url = database.runtimeUrls.management;
const sql = connectPostgres({ url, name: "test", maxConnections: 2, logger });
afterAll(async () => {
  await sql.end();
  await database.drop();
});
beforeEach(async () => {
  await sql`delete from outbox`;
});

/** Runs batches during `work`. */
async function whileRunning(work: (written: () => number) => Promise<void>): Promise<void> {
  let batches = 0;
  const running = startBatches({
    ...{ sql, logger, failure: "a batch failed" },
    writer: createWriter({ sql, newId: uuidv7, wakeRelay: () => undefined }),
    hasWork: async () => true,
    writeBatch: async () => {
      batches += 1;
      return true;
    },
  });
  try {
    await work(() => batches);
  } finally {
    await running.stop();
  }
}

/** As many unsent rows as pause the work. */
const rowsOf = <T>(row: () => T) => Array.from({ length: 1_000 }, row);

describe("work in batches", () => {
  it("continues while events of an organization wait for webhook dispatchers", async () => {
    const organizationId = randomUUID();
    await insertRows(
      sql,
      rowsOf(() => eventRow(organizationId)),
    );
    await whileRunning(async (written) => {
      await eventually(() => written() > 0);
    });
  });

  it("pauses while changes of the snapshot queue", async () => {
    await insertRows(
      sql,
      rowsOf(() => flagRow(randomUUID())),
    );
    await whileRunning(async (written) => {
      await pause(1_000, new AbortController().signal);
      expect(written()).toBe(0);
      await sql`delete from outbox where id = (select min(id) from outbox)`;
      await eventually(() => written() > 0);
    });
  });
});
