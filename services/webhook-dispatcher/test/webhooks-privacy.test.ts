import { afterAll, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { openDispatcher } from "./dispatcher-fixture.ts";

/**
 * Valid and invalid requests send secrets that contain this mark, in every field that accepts one. The tests search for
 * the mark in all responses, in the log at the level `trace`, and in all rows of the database.
 */
const mark = "MARKEDSECRET";

const answers: string[] = [];

async function ask(path: string, method: string, body?: unknown) {
  const answer = await replica.call(path, { method, key: tenant.serverKey, body });
  answers.push(JSON.stringify([...answer.headers, answer.body]));
  return answer;
}

const marked = (what: string) => `${mark} ${what}`;

async function useSecretsInEveryWay(): Promise<void> {
  const url = `${dispatcher.receiver.url}/hooks`;
  const fields = { name: uuidv7(), url, events: ["flag.toggled"] };
  const created = await ask(tenant.path, "POST", { ...fields, secret: marked("one") });
  expect(created.status).toBe(201);
  const path = `${tenant.path}/${created.body.id}`;
  const other = await ask(tenant.path, "POST", { ...fields, name: uuidv7() });

  const another = { secret: marked("two"), secret_overlap_seconds: 3_600 };
  expect((await ask(path, "PATCH", another)).body.has_secret).toBe(true);
  expect((await ask(path, "PATCH", another)).status).toBe(200);
  expect((await ask(`${path}/test`, "POST")).body.success).toBe(true);
  dispatcher.receiver.answer({ kind: "close", when: "at once" });
  expect((await ask(`${path}/test`, "POST")).body.success).toBe(false);
  await ask(path, "GET");
  await ask(tenant.path, "GET");

  const taken = { name: other.body.name, secret: marked("taken") };
  expect((await ask(path, "PATCH", taken)).status).toBe(409);
  expect((await ask(tenant.path, "POST", { ...fields, ...taken })).status).toBe(409);
  for (const wrong of [
    { secret: marked("long".repeat(100)) },
    { secret: marked("torn \ud800") },
    { secret: [marked("in an array")] },
    { secret: { text: marked("in an object") } },
    { secret: marked("overlap"), secret_overlap_seconds: -1 },
    { secret: marked("url"), url: "nowhere" },
    { secret: marked("extra"), more: marked("more") },
  ]) {
    expect((await ask(path, "PATCH", wrong)).status).toBe(400);
    expect((await ask(tenant.path, "POST", { ...fields, ...wrong })).status).toBe(400);
  }
  expect((await ask(`${path}?secret=${mark}`, "GET")).status).toBe(400);
  // With another key in the configuration, the secret cannot be decrypted, which is logged.
  const keyless = await dispatcher.startReplica({ secretKeys: otherKey });
  const answer = await keyless.call(`${path}/test`, { method: "POST", key: tenant.serverKey });
  expect(answer.status).toBe(500);
  answers.push(JSON.stringify(answer.body), keyless.log());
}

const otherKey = `other:${Buffer.alloc(32, 9).toString("base64")}`;

const dispatcher = await openDispatcher();
afterAll(() => dispatcher.close());
const replica = await dispatcher.startReplica();
const tenant = await dispatcher.newTenant(replica);
await useSecretsInEveryWay();

it("is in no response", () => {
  expect(answers.length).toBeGreaterThan(20);
  for (const answer of answers) expect(answer).not.toContain(mark);
});

it("is not in the log", () => {
  expect(replica.log()).toContain("/webhooks");
  expect(replica.log()).not.toContain(mark);
});

it("is not in the database, neither in plain text nor in hexadecimal or base64", async () => {
  const { admin } = dispatcher;
  const tables = await admin<{ name: string }[]>`
    select table_name as name from information_schema.tables where table_schema = 'webhooks'`;
  let content = "";
  for (const { name } of tables) {
    const rows = await admin<
      { text: string }[]
    >`select entry::text as text from ${admin(name)} as entry`;
    content += rows.map(({ text }) => text).join("\n");
  }
  expect(content).toContain(tenant.projectId);
  const bytes = Buffer.from(mark);
  for (const form of [mark, bytes.toString("hex"), bytes.toString("base64").slice(0, 12)])
    expect(content).not.toContain(form);
});
