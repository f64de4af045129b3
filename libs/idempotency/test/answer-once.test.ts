import { randomBytes } from "node:crypto";
import { type Answer, answer, createProblem, isProblem, type Problem } from "@halyard/http";
import { connectPostgres } from "@halyard/postgres";
import { createTestDatabase } from "@halyard/testing";
import { afterAll, beforeEach, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import postgres from "postgres";
import { createAnswerOnce, deleteExpiredAnswers } from "../src/index.ts";

/** Repeated responses, in transactions of a service that has the table. */
let done: number;

const database = await createTestDatabase();
const sql = connectPostgres({
  url: database.runtimeUrls.scheduler,
  name: "test",
  maxConnections: 4,
  logger: pino({ level: "silent" }),
});
const admin = postgres(database.adminUrl, { max: 1, connection: { search_path: "scheduler" } });
afterAll(async () => {
  await Promise.all([sql.end(), admin.end()]);
  await database.drop();
});
beforeEach(async () => {
  done = 0;
  await admin`delete from idempotency_keys`;
});

const answerOnce = createAnswerOnce(randomBytes);

type Sent = {
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

/** Returns a response as its client receives it: the stored one has a text in place of the body. */
const received = (given: Answer | Problem) => {
  if (isProblem(given)) return given;
  const { status, headers, json } = given;
  const body: unknown = json === undefined ? given.body : JSON.parse(json.toString());
  return { status, headers, body };
};

/** Sends a request like a service, which rolls back the transaction of a problem. */
async function send(sent: Sent = {}, doing: () => Promise<Answer | Problem> = work) {
  const { idempotencyKey = "key", authorization = "Bearer secret", ...rest } = sent;
  const request = { id: "1", ip: "::1", headers: { authorization }, idempotencyKey };
  const given = { caller: "me", operationId: "makeThing", params: {}, body: {}, ...rest, request };
  let problem: Problem | undefined;
  const answered = sql.begin(async (tx) => {
    const result = await answerOnce(tx, given, doing);
    if (!isProblem(result)) return result;
    problem = result;
    throw new Error("rolled back");
  });
  return answered.then(received).catch((error: unknown) => {
    if (problem === undefined) throw error;
    return problem;
  });
}

describe("given a request with an Idempotency-Key", () => {
  it("does the work once and returns the same response again, including headers", async () => {
    const first = await send();
    expect(first).toEqual({ status: 201, headers: { location: "/things/1" }, body: { number: 1 } });
    expect(await send()).toEqual(first);
    expect(done).toBe(1);
  });

  it("makes concurrent requests wait for the first", async () => {
    const answers = await Promise.all([send(), send(), send(), send()]);
    expect(new Set(answers.map((each) => JSON.stringify(each))).size).toBe(1);
    expect(done).toBe(1);
  });

  it("ignores the order of fields", async () => {
    await send({ body: { a: 1, b: [{ c: 2, d: 3 }] } });
    await send({ body: { b: [{ d: 3, c: 2 }], a: 1 } });
    expect(done).toBe(1);
  });

  it.each<[string, Sent]>([
    ["another body", { body: { a: 1 } }],
    ["another path", { params: { id: "1" } }],
    ["another route", { operationId: "makeOther" }],
    ["a credential that did not receive the first response", { authorization: "Bearer other" }],
  ])("rejects %s with the same key", async (_what, sent) => {
    await send();
    expect(await send(sent)).toMatchObject({ rejected: "CONFLICT_001" });
    expect(done).toBe(1);
  });

  it.each([[""], ["k".repeat(256)], ["\u00e9"], ["a\tb"]])(
    "rejects an invalid key (%j)",
    async (idempotencyKey) => {
      expect(await send({ idempotencyKey })).toMatchObject({ rejected: "VALIDATION_001" });
      expect(done).toBe(0);
    },
  );

  it("distinguishes callers", async () => {
    await send();
    expect(await send({ caller: "another" })).toMatchObject({ body: { number: 2 } });
    expect(await send()).toMatchObject({ body: { number: 1 } });
  });

  it("stores neither problems nor errors", async () => {
    const rejected = createProblem("CONFLICT_002", "Not now.");
    expect(await send({}, async () => rejected)).toBe(rejected);
    await expect(send({}, () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
    expect(await send()).toMatchObject({ body: { number: 1 } });
  });
});

describe("given expired responses", () => {
  const age = () => admin`
    update idempotency_keys set created_at = created_at - interval '24 hours 1 minute'`;

  it("accepts the key for a new request", async () => {
    await send();
    await age();
    expect(await send({ body: { a: 1 } })).toMatchObject({ body: { number: 2 } });
  });

  it("deletes them in batches, and no newer ones", async () => {
    for (const idempotencyKey of ["a", "b", "c"]) await send({ idempotencyKey });
    await age();
    await send({ idempotencyKey: "d" });
    expect(await deleteExpiredAnswers(sql, 2)).toBe(2);
    expect(await deleteExpiredAnswers(sql, 2)).toBe(1);
    expect(await deleteExpiredAnswers(sql, 2)).toBe(0);
    expect((await admin`select from idempotency_keys`).count).toBe(1);
  });
});
