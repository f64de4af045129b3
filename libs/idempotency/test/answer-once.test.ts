import { randomBytes } from "node:crypto";
import { connectPostgres, type Sql } from "@halyard/postgres";
import { type Answer, answer, createProblem, isProblem, type Problem } from "@halyard/service";
import { createTestDatabase, type TestDatabase } from "@halyard/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import postgres from "postgres";
import { createAnswerOnce, deleteExpiredAnswers } from "../src/index.ts";

/** Answers that are given once more, in transactions of a service that has the table. */
let database: TestDatabase;
let sql: Sql;
let admin: postgres.Sql;
let done: number;

beforeAll(async () => {
  database = await createTestDatabase();
  sql = connectPostgres({
    url: database.runtimeUrls.scheduler,
    name: "test",
    maxConnections: 4,
    logger: pino({ level: "silent" }),
  });
  admin = postgres(database.adminUrl, { max: 1, connection: { search_path: "scheduler" } });
});
beforeEach(async () => {
  done = 0;
  await admin`delete from idempotency_keys`;
});
afterAll(async () => {
  await Promise.all([sql.end(), admin.end()]);
  await database.drop();
});

const answerOnce = createAnswerOnce(randomBytes);

type Asked = {
  caller?: string;
  operationId?: string;
  params?: unknown;
  body?: unknown;
  idempotencyKey?: string | undefined;
  authorization?: string;
};

const work = async () => {
  done += 1;
  return answer.created(`/things/${done}`, { number: done });
};

/** As a service does it: what is refused is rolled back. */
async function ask(asked: Asked = {}, doing: () => Promise<Answer | Problem> = work) {
  const { idempotencyKey = "key", authorization = "Bearer secret", ...rest } = asked;
  const request = { id: "1", ip: "::1", headers: { authorization }, idempotencyKey };
  const given = { caller: "me", operationId: "makeThing", params: {}, body: {}, ...rest, request };
  let problem: Problem | undefined;
  const answered = sql.begin(async (tx) => {
    const result = await answerOnce(tx, given, doing);
    if (!isProblem(result)) return result;
    problem = result;
    throw new Error("rolled back");
  });
  return answered.catch((error: unknown) => {
    if (problem === undefined) throw error;
    return problem;
  });
}

describe("given a request with an Idempotency-Key", () => {
  it("does the work once and answers the same again, headers included", async () => {
    const first = await ask();
    expect(first).toEqual({ status: 201, headers: { location: "/things/1" }, body: { number: 1 } });
    expect(await ask()).toEqual(first);
    expect(done).toBe(1);
  });

  it("lets those that come at once wait for the first", async () => {
    const answers = await Promise.all([ask(), ask(), ask(), ask()]);
    expect(new Set(answers.map((each) => JSON.stringify(each))).size).toBe(1);
    expect(done).toBe(1);
  });

  it("takes fields in another order for the same request", async () => {
    await ask({ body: { a: 1, b: [{ c: 2, d: 3 }] } });
    await ask({ body: { b: [{ d: 3, c: 2 }], a: 1 } });
    expect(done).toBe(1);
  });

  it.each<[string, Asked]>([
    ["another body", { body: { a: 1 } }],
    ["another path", { params: { id: "1" } }],
    ["another route", { operationId: "makeOther" }],
    ["a credential that did not see the first answer", { authorization: "Bearer other" }],
  ])("refuses %s under the same key", async (_what, asked) => {
    await ask();
    expect(await ask(asked)).toMatchObject({ rejected: "CONFLICT_001" });
    expect(done).toBe(1);
  });

  it.each([[""], ["k".repeat(256)], ["\u00e9"], ["a\tb"]])(
    "refuses one that is none (%j)",
    async (idempotencyKey) => {
      expect(await ask({ idempotencyKey })).toMatchObject({ rejected: "VALIDATION_001" });
      expect(done).toBe(0);
    },
  );

  it("tells callers apart", async () => {
    await ask();
    expect(await ask({ caller: "somebody else" })).toMatchObject({ body: { number: 2 } });
  });

  it("remembers neither what was refused nor what failed", async () => {
    const rejected = createProblem("CONFLICT_002", "Not now.");
    expect(await ask({}, async () => rejected)).toBe(rejected);
    await expect(ask({}, () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
    expect(await ask()).toMatchObject({ body: { number: 1 } });
  });
});

describe("given answers of yesterday", () => {
  const age = () => admin`
    update idempotency_keys set created_at = created_at - interval '24 hours 1 minute'`;

  it("takes the key for a new request", async () => {
    await ask();
    await age();
    expect(await ask({ body: { a: 1 } })).toMatchObject({ body: { number: 2 } });
  });

  it("forgets them, a batch at a time, and no younger ones", async () => {
    for (const idempotencyKey of ["a", "b", "c"]) await ask({ idempotencyKey });
    await age();
    await ask({ idempotencyKey: "d" });
    expect(await deleteExpiredAnswers(sql, 2)).toBe(2);
    expect(await deleteExpiredAnswers(sql, 2)).toBe(1);
    expect(await deleteExpiredAnswers(sql, 2)).toBe(0);
    expect((await admin`select from idempotency_keys`).count).toBe(1);
  });
});
