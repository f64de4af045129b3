import { randomUUID } from "node:crypto";
import { isProblem } from "@halyard/http";
import { afterAll, describe, expect, it } from "@jest/globals";
import { readContext } from "../../src/access/change-context.ts";
import { changeFlag } from "../../src/flags/flag-changes.ts";
import { expectWholeHistory, flagsOf } from "../flag-fixture.ts";
import { openManagement, operatorToken, seedProject } from "../management-fixture.ts";

const management = await openManagement();
afterAll(() => management.close());
const project = await seedProject(management);
const key = project.serverKey;
const flags = flagsOf(management, project);

const stateOf = (flagId: string, environmentId = project.environmentId) =>
  `/api/v1/flags/${flagId}/environments/${environmentId}`;

const rollBack = (flagId: string, headers: Record<string, string> = {}, caller = key) =>
  management.call(`${stateOf(flagId)}/rollback`, { method: "POST", key: caller, headers });

const readState = async (flagId: string) => (await management.call(stateOf(flagId), { key })).body;

const readHistory = async (flagId: string) =>
  (await management.call(`${stateOf(flagId)}/history?limit=1000`, { key })).body.history;

const settings = ({ enabled, rollout_percentage, targeting_rules }: Record<string, unknown>) => ({
  enabled,
  rollout_percentage,
  targeting_rules,
});

const austrians = [{ conditions: [{ attribute: "country", operator: "in", value: ["AT"] }] }];

describe("rolling back", () => {
  it("reverts all fields of the newest change, as a new change", async () => {
    const flag = await flags.createFlag({ enabled: true, targeting_rules: austrians });
    await flags.patch(`/api/v1/flags/${flag.id}`, {
      enabled: false,
      rollout_percentage: 5,
      targeting_rules: [],
    });
    const answer = await rollBack(flag.id);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      message: expect.stringContaining(flag.created_at),
      enabled: true,
      rollout_percentage: 100,
      rolled_back_to: flag.created_at,
    });
    expect(answer.headers.get("etag")).toBe('"3"');
    const state = await readState(flag.id);
    expect(state).toMatchObject({
      enabled: true,
      rollout_percentage: 100,
      targeting_rules: austrians,
      version: 3,
    });
    expect((await readHistory(flag.id))[0]).toMatchObject({
      ...settings(state),
      change_type: "rollback",
      changed_by: project.userId,
      changed_at: state.updated_at,
    });
    expect(await flags.historyOf(flag.id)).toHaveLength(3);
  });

  it("does not change name, description and type", async () => {
    const flag = await flags.createFlag();
    await flags.patch(`/api/v1/flags/${flag.id}`, { enabled: true, name: "Renamed" });
    await rollBack(flag.id);
    const read = await management.call(`/api/v1/flags/${flag.id}`, { key });
    expect(read.body).toMatchObject({ name: "Renamed", enabled: false, version: 3 });
  });

  it("undoes itself when repeated", async () => {
    const flag = await flags.createFlag();
    const changed = await flags.patch(`/api/v1/flags/${flag.id}`, { rollout_percentage: 7 });
    await rollBack(flag.id);
    const again = await rollBack(flag.id);
    expect(again.body).toMatchObject({
      rollout_percentage: 7,
      rolled_back_to: changed.body.updated_at,
    });
    const percentages = (await readHistory(flag.id)).map(
      (entry: { rollout_percentage: number }) => entry.rollout_percentage,
    );
    expect(percentages).toEqual([7, 100, 7, 100]);
  });

  it("undoes a scheduled change", async () => {
    const flag = await flags.createFlag();
    await management.sql.begin(async (tx) => {
      const clock = { now: () => new Date(), newId: randomUUID };
      const author = { userId: project.userId, apiKeyId: null, via: "schedule" as const };
      const changed = await changeFlag(
        {
          ...{
            tx,
            publish: () => undefined,
            countMessages: () => undefined,
            doNotAwait: () => undefined,
            ...clock,
          },
          beforeCommit: () => undefined,
          context: () => readContext(tx, { author, cause: "scheduled" }, clock),
        },
        { scope: { ...project, flagId: flag.id } },
        { enabled: true },
      );
      expect(isProblem(changed)).toBe(false);
    });
    expect((await rollBack(flag.id)).body).toMatchObject({ enabled: false });
    const types = (await readHistory(flag.id)).map(
      (entry: { change_type: string }) => entry.change_type,
    );
    expect(types).toEqual(["rollback", "scheduled", "manual"]);
  });

  it("restores large rules byte for byte", async () => {
    const rules = Array.from({ length: 30 }, (_, index) => ({
      name: `Rule "${index}" – Straße 😀`,
      value: index % 2 === 0,
      conditions: [
        { attribute: "n", operator: "gt", value: 1e20 + index },
        {
          attribute: "s",
          operator: "in",
          value: [..."äöü\\\u2028", 0.1, -1.5e-7, true, "x".repeat(9_000)],
        },
      ],
    }));
    const flag = await flags.createFlag({ targeting_rules: rules });
    const text = async () => {
      const headers = { authorization: `Bearer ${key}` };
      const answer = await fetch(management.url + stateOf(flag.id), { headers });
      return (await answer.text()).replace(/"version":.*/, "");
    };
    const before = await text();
    expect(before.length).toBeGreaterThan(270_000);
    await flags.patch(`/api/v1/flags/${flag.id}`, { targeting_rules: [] });
    await rollBack(flag.id);
    expect(await text()).toBe(before);
  });

  it("accepts a request without a body, with an empty body, and with an empty object", async () => {
    const flag = await flags.createFlag();
    await flags.patch(`/api/v1/flags/${flag.id}`, { rollout_percentage: 1 });
    const json = { "content-type": "application/json" };
    for (const [headers, body] of [
      [{}, undefined],
      [json, undefined],
      [json, ""],
      [json, "{}"],
    ] as const) {
      const answer = await fetch(`${management.url}${stateOf(flag.id)}/rollback`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, ...headers },
        ...(body === undefined ? {} : { body }),
      });
      expect(answer.status).toBe(200);
    }
  });

  it("rejects a request with fields, and changes nothing", async () => {
    const flag = await flags.createFlag();
    await flags.patch(`/api/v1/flags/${flag.id}`, { rollout_percentage: 1 });
    const before = await management.call(stateOf(flag.id), { key });
    const rejected = await management.call(`${stateOf(flag.id)}/rollback`, {
      method: "POST",
      key,
      body: { to: flag.id },
    });
    expect(rejected.status).toBe(400);
    expect(rejected.body.error.message).toBe(
      "/to is not a known field: this request takes no body",
    );
    expect((await management.call(stateOf(flag.id), { key })).body).toEqual(before.body);
  });
});

describe("a rollback is rejected", () => {
  it("for a state that never changed", async () => {
    const flag = await flags.createFlag();
    const answer = await rollBack(flag.id);
    expect(answer.status).toBe(409);
    expect(answer.body.error.code).toBe("CONFLICT_002");
    expect(await flags.historyOf(flag.id)).toHaveLength(1);
  });

  it("if `If-Match` does not name the current version", async () => {
    const flag = await flags.createFlag();
    await flags.patch(`/api/v1/flags/${flag.id}`, { enabled: true });
    await flags.patch(`/api/v1/flags/${flag.id}`, { rollout_percentage: 5 });
    const rejected = await rollBack(flag.id, { "if-match": '"2"' });
    expect(rejected.status).toBe(412);
    expect(rejected.body.error.code).toBe("CONFLICT_003");
    expect(rejected.headers.get("etag")).toBe('"3"');
    expect(rejected.body.error.message).toBe(
      `If-Match does not name the present version of ${stateOf(flag.id)}, which is "3". Read that again, then send the request again.`,
    );
    expect((await rollBack(flag.id, { "if-match": '"3"' })).status).toBe(200);
    expect((await rollBack(flag.id, { "if-match": '"3"' })).status).toBe(412);
    expect(await readState(flag.id)).toMatchObject({ enabled: true, rollout_percentage: 100 });
  });

  it("for a flag or environment that the key may not change", async () => {
    const flag = await flags.createFlag();
    const other = stateOf(flag.id, project.otherEnvironmentId);
    await flags.patch(other, { enabled: true });
    const stranger = await seedProject(management);
    const post = (path: string, caller: string) =>
      management.call(`${path}/rollback`, { method: "POST", key: caller });
    for (const [path, caller, status, code] of [
      [other, project.environmentOnlyKey, 403, "AUTH_002"],
      [other, project.clientKey, 403, "AUTH_002"],
      [other, operatorToken, 403, "AUTH_002"],
      [other, stranger.serverKey, 404, "NOT_FOUND_001"],
      [stateOf(flag.id, stranger.environmentId), key, 404, "NOT_FOUND_001"],
      [stateOf(randomUUID()), key, 404, "NOT_FOUND_001"],
    ] as const) {
      const answer = await post(path, caller);
      expect([answer.status, answer.body.error.code]).toEqual([status, code]);
    }
    expect((await post(other, key)).body).toMatchObject({ enabled: false });
  });
});

describe("Idempotency-Key", () => {
  it("rolls back once, and returns the first response again", async () => {
    const flag = await flags.createFlag();
    await flags.patch(`/api/v1/flags/${flag.id}`, { enabled: true });
    const headers = { "idempotency-key": `once ${flag.id}` };
    const answers = await Promise.all([1, 2, 3, 4].map(() => rollBack(flag.id, headers)));
    for (const answer of answers) {
      expect(answer.status).toBe(200);
      expect(answer.body).toEqual(answers[0]?.body);
      expect(answer.headers.get("etag")).toBe('"3"');
    }
    expect(await flags.historyOf(flag.id)).toHaveLength(3);
  });

  it("is rejected for another flag", async () => {
    const [one, other] = [await flags.createFlag(), await flags.createFlag()];
    for (const { id } of [one, other]) await flags.patch(`/api/v1/flags/${id}`, { enabled: true });
    const headers = { "idempotency-key": `used ${one.id}` };
    expect((await rollBack(one.id, headers)).status).toBe(200);
    const rejected = await rollBack(other.id, headers);
    expect([rejected.status, rejected.body.error.code]).toEqual([409, "CONFLICT_001"]);
  });
});

describe("given many concurrent rollbacks", () => {
  it("undoes and redoes in turn, with one entry each", async () => {
    const flag = await flags.createFlag();
    await flags.patch(`/api/v1/flags/${flag.id}`, { enabled: true });
    const answers = await Promise.all(Array.from({ length: 41 }, () => rollBack(flag.id)));
    expect(answers.filter((answer) => answer.body.enabled)).toHaveLength(20);
    expect(new Set(answers.map((answer) => answer.headers.get("etag"))).size).toBe(41);
    expect(await readState(flag.id)).toMatchObject({ enabled: false, version: 43 });
    expect(await flags.historyOf(flag.id)).toHaveLength(43);
    await expectWholeHistory(management.sql);
  });

  it("accepts one of the requests that name the same version", async () => {
    const flag = await flags.createFlag();
    await flags.patch(`/api/v1/flags/${flag.id}`, { enabled: true });
    const headers = { "if-match": '"2"' };
    const answers = await Promise.all(Array.from({ length: 20 }, () => rollBack(flag.id, headers)));
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(1);
    expect(answers.filter((answer) => answer.status === 412)).toHaveLength(19);
    expect(await readState(flag.id)).toMatchObject({ enabled: false });
  });

  it("always restores the previous state during concurrent changes", async () => {
    const racing = await Promise.all(
      [0, 1, 2].map(() => flags.createFlag({ rollout_percentage: 0 })),
    );
    for (const { id } of racing) await flags.patch(`/api/v1/flags/${id}`, { enabled: true });
    for (let round = 1; round <= 100; round += 1) {
      const answers = await Promise.all(
        racing.flatMap(({ id }) => [
          flags.patch(`/api/v1/flags/${id}`, { rollout_percentage: round }),
          rollBack(id),
        ]),
      );
      expect(answers.map((answer) => answer.status)).toEqual(answers.map(() => 200));
    }
    for (const { id } of racing) {
      const newestFirst = await readHistory(id);
      // A change to the state that a rollback has just restored adds no entry.
      expect(newestFirst.length).toBeGreaterThan(150);
      newestFirst.forEach((entry: Record<string, unknown>, index: number) => {
        if (entry.change_type === "rollback")
          expect(settings(entry)).toEqual(settings(newestFirst[index + 2]));
      });
      expect(settings(newestFirst[0])).toEqual(settings(await readState(id)));
    }
    await expectWholeHistory(management.sql);
  });
});
