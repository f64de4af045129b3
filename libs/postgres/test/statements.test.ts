import { createTestDatabase } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import { connectPostgres } from "../src/connect.ts";
import { fragment, json } from "../src/statements.ts";

const database = await createTestDatabase();
const sql = connectPostgres({
  url: database.runtimeUrls.management,
  name: "statements",
  maxConnections: 1,
  logger: pino({ level: "silent" }),
});
afterAll(async () => {
  await sql.end();
  await database.drop();
});

describe("values", () => {
  it("keep dates, 64-bit integers, booleans, bytes and JSON", async () => {
    const values = {
      at: new Date("2026-01-02T03:04:05.678Z"),
      day: new Date("2026-01-02T00:00:00Z"),
      large: Number.MAX_SAFE_INTEGER,
      part: 0.25,
      yes: true,
      bytes: Buffer.from([0, 255]),
      none: null,
      document: { list: [1, "two"], 'a"b': null },
    };
    const [row] = await sql`
      select ${values.at}::timestamptz as at, ${values.day}::date as day,
        ${values.large}::bigint as large, ${values.part}::float8 as part, ${values.yes}::boolean as yes,
        ${values.bytes}::bytea as bytes, ${values.none}::text as none,
        ${json(values.document)}::jsonb as document`;
    expect(row).toEqual(values);
  });

  it("keep each element of a list unchanged", async () => {
    const texts = ["plain", 'with "quotes"', "back\\slash", "a,b", "{}", "", "NULL", "ünïcode 🚢"];
    const rows = await sql`
      select text, number
      from unnest(${texts}::text[], ${texts.map((_, index) => index)}::bigint[]) as row (text, number)`;
    expect(rows.map(({ text, number }) => [text, number])).toEqual(
      texts.map((text, index) => [text, index]),
    );
  });

  it("have dates inside JSON in UTC", async () => {
    const [row] = await sql`select to_jsonb(timestamptz '2026-01-02T03:04:05Z') as at`;
    expect(row?.at).toBe("2026-01-02T03:04:05+00:00");
  });

  it("cannot be undefined, and then nothing is sent", async () => {
    const missing = undefined as unknown as string;
    await expect(sql`select ${missing}::text`).rejects.toThrow("is undefined");
    await expect(sql.unprepared("select $1::text", [missing])).rejects.toThrow("is undefined");
  });
});

describe("statements", () => {
  it("return the number of returned or changed rows", async () => {
    expect((await sql`select from generate_series(1, 3)`).count).toBe(3);
    expect((await sql`update flags set updated_at = now() where false`).count).toBe(0);
  });

  it("are composed of fragments, with the parameters in their order", async () => {
    const upTo = (max: number) => fragment`n <= ${max}`;
    const rows = await sql<{ n: number; label: string }[]>`
      select n, ${"label"}::text as label from generate_series(1, 9) as n
      where ${upTo(7)} and n > ${4} ${fragment`and n <> ${6}`} ${fragment``}`;
    expect(rows.map(({ n, label }) => [n, label])).toEqual([
      [5, "label"],
      [7, "label"],
    ]);
  });

  it("are prepared once for each text", async () => {
    const read = (limit: number, only: boolean) =>
      sql`select name from pg_prepared_statements
        where ${only ? fragment`name is not null` : fragment`true`} limit ${limit}`;
    await read(1, true);
    await read(2, false);
    const before = await read(1_000, true);
    expect((await read(999, true)).length).toBe(before.length);
  });

  it("are planned each time without a name", async () => {
    const prepared = async () => (await sql`select from pg_prepared_statements`).length;
    const before = await prepared();
    await sql.unprepared("select $1::integer", [1]);
    expect(await prepared()).toBe(before);
  });
});
