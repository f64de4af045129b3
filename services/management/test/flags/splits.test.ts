import { compile, contextOf, splitBucketOf } from "@halyard/evaluation";
import { afterAll, describe, expect, it } from "@jest/globals";
import { expectWholeHistory, flagsOf } from "../flag-fixture.ts";
import { openManagement, seedProject } from "../management-fixture.ts";

/** Tests what typed flags serve: splits, their buckets, and how few users a change of weights moves. */

const management = await openManagement();
afterAll(() => management.close());
const project = await seedProject(management);
const key = project.serverKey;
const flags = flagsOf(management, project);

const variations = ["a", "b", "c"].map((each) => ({ key: each, value: each }));
const createTyped = (body: Record<string, unknown> = {}) =>
  flags.createFlag({ value_type: "string", variations, ...body });

const stateOf = (flagId: string, environmentId = project.environmentId) =>
  `/api/v1/flags/${flagId}/environments/${environmentId}`;

type Weights = Record<string, number>;
const splitOf = (weights: Weights) => ({
  split: Object.entries(weights).map(([variation, weight]) => ({ variation, weight })),
});

type Range = [number, number];
const withRanges = (given: Record<string, Range[]>) => ({
  split: Object.entries(given).map(([variation, ranges]) => ({
    variation,
    weight: ranges.reduce((sum, [from, to]) => sum + to - from, 0) / 100,
    ranges,
  })),
});

const serving = (flagId: string, serve: unknown) =>
  flags.patch(`/api/v1/flags/${flagId}`, { serve });

const ruleWith = (serve: unknown, more: object = {}) => ({
  conditions: [{ attribute: "country", operator: "equals", value: "DE" }],
  serve,
  ...more,
});

describe("a split", () => {
  it("covers all buckets once, in the order of its members", async () => {
    const { serve } = await createTyped({ serve: splitOf({ a: 33.33, b: 33.34, c: 33.33 }) });
    expect(serve).toEqual({
      split: [
        { variation: "a", weight: 33.33, ranges: [[0, 3_333]] },
        { variation: "b", weight: 33.34, ranges: [[3_333, 6_667]] },
        { variation: "c", weight: 33.33, ranges: [[6_667, 10_000]] },
      ],
    });
  });

  it("begins with its first member, also if the flag has another first variation", async () => {
    const { serve } = await createTyped({ serve: splitOf({ b: 60, a: 40 }) });
    expect(serve).toEqual(withRanges({ b: [[0, 6_000]], a: [[6_000, 10_000]] }));
  });

  it("of a rule keeps the buckets of the state, because every rule has an id", async () => {
    const rule = { conditions: [], name: "All" };
    const flag = await createTyped({ serve: { variation: "b" }, targeting_rules: [rule] });
    const [{ id }] = flag.targeting_rules;
    expect(id).toEqual(expect.any(String));
    const serve = splitOf({ a: 40, b: 60 });
    const { body } = await flags.patch(`/api/v1/flags/${flag.id}`, {
      targeting_rules: [{ ...rule, id, serve }],
    });
    expect(body.targeting_rules[0].serve).toEqual(
      withRanges({ a: [[6_000, 10_000]], b: [[0, 6_000]] }),
    );
  });

  it("keeps members with the weight 0", async () => {
    const { serve } = await createTyped({ serve: splitOf({ a: 100, b: 0 }) });
    expect(serve.split[1]).toEqual({ variation: "b", weight: 0, ranges: [] });
  });

  it("can be set for one environment only", async () => {
    const flag = await createTyped();
    const path = stateOf(flag.id, project.otherEnvironmentId);
    const changed = await flags.patch(path, { serve: splitOf({ a: 7.25, c: 92.75 }) });
    expect(changed.body.serve.split[0].ranges).toEqual([[0, 725]]);
    const { body } = await management.call(stateOf(flag.id), { key });
    expect(body.serve).toEqual({ variation: "a" });
  });

  it("is in the event, the history and the snapshot, with the decimals of its weights", async () => {
    const flag = await createTyped({ enabled: true });
    const { body } = await management.call(`/api/v1/flags/${flag.id}`, {
      ...{ method: "PATCH", key, headers: { "content-type": "application/json" } },
      text: '{"serve":{"split":[{"variation":"a","weight":12.10},{"variation":"b","weight":87.90}]}}',
    });
    const { serve } = body;
    expect(serve).toEqual({
      split: [
        { variation: "a", weight: 12.1, ranges: [[0, 1_210]] },
        { variation: "b", weight: 87.9, ranges: [[1_210, 10_000]] },
      ],
    });
    const [, event] = await flags.eventsOf(flag.id);
    expect(event).toMatchObject({
      event: "flag_state.updated",
      state: { serve },
      state_before: { serve: { variation: "a" } },
    });
    expect((await flags.historyOf(flag.id)).at(-1)).toMatchObject({ serve });
    const entry = (await flags.flagEntriesOf(flag.id)).at(-1);
    expect(entry).toMatchObject({ serve, version: 2 });
    const users = Array.from({ length: 1_000 }, (_, index) => `user-${index}`);
    const { variationOf } = compile(entry);
    expect(users.map((id) => variationOf?.(contextOf({ id })))).toEqual(
      users.map((id) => (splitBucketOf(flag.key, id) < 1_210 ? 0 : 1)),
    );
    await expectWholeHistory(management.sql);
  });

  it("is explained with the bucket of the user and the ranges", async () => {
    const flag = await createTyped({ enabled: true, serve: splitOf({ a: 50, b: 50 }) });
    const bucket = splitBucketOf(flag.key, "user-42");
    const body = { user: { id: "user-42" } };
    const explained = await management.call(`${stateOf(flag.id)}/explain`, {
      ...{ method: "POST", key, body },
    });
    const variation = bucket < 5_000 ? "a" : "b";
    expect(explained.body).toMatchObject({
      ...{ value: variation, variation, reason: "split" },
      trace: { serve: flag.serve, bucket },
    });
  });
});

describe("a user without the attribute of a split", () => {
  it("is out, and the explanation has the split without a bucket", async () => {
    const flag = await createTyped({
      ...{ enabled: true, bucket_by: "company", off_variation: "c" },
      serve: splitOf({ a: 50, b: 50 }),
    });
    const body = { user: { id: "user-42" } };
    const explained = await management.call(`${stateOf(flag.id)}/explain`, {
      ...{ method: "POST", key, body },
    });
    expect(explained.body).toMatchObject({
      ...{ value: "c", variation: "c", reason: "split" },
      trace: { serve: flag.serve, bucket: null },
    });
  });
});

describe("a split that is rejected", () => {
  const half = { weight: 50 };
  it.each<[string, unknown, string]>([
    ["without members", { split: [] }, "/serve"],
    [
      "with weights below 100 together",
      splitOf({ a: 50, b: 49.99 }),
      "/serve/split must have weights that add up to 100, not 99.99",
    ],
    ["with weights above 100 together", splitOf({ a: 100, b: 0.01 }), "not 100.01"],
    [
      "with three decimals",
      splitOf({ a: 50.001, b: 49.999 }),
      "/serve/split/0/weight must have at most two decimals",
    ],
    ["with a negative weight", splitOf({ a: 101, b: -1 }), "/serve"],
    [
      "with a variation twice",
      { split: [half, half].map((each) => ({ ...each, variation: "a" })) },
      "/serve/split/1/variation must be in the split only once",
    ],
    [
      "with an unknown variation",
      splitOf({ a: 50, none: 50 }),
      "/serve/split/1/variation must be the key of a variation of the flag",
    ],
    [
      "with ranges of some members",
      {
        split: [
          { variation: "a", weight: 50, ranges: [[0, 5_000]] },
          { variation: "b", ...half },
        ],
      },
      "/serve/split must have ranges for all of its members",
    ],
    [
      "with ranges that do not fit the weight",
      {
        split: [
          { variation: "a", ...half, ranges: [[0, 4_000]] },
          { variation: "b", ...half, ranges: [[4_000, 10_000]] },
        ],
      },
      "/serve/split/0/ranges must have 50 % of the 10,000 buckets",
    ],
    [
      "with ranges of two members that overlap",
      {
        split: [
          { variation: "a", ...half, ranges: [[0, 5_000]] },
          { variation: "b", ...half, ranges: [[4_000, 9_000]] },
        ],
      },
      "/serve/split must cover each bucket once",
    ],
    [
      "with descending ranges",
      {
        split: [
          { variation: "a", ...half, ranges: [[1_000, 5_000], [0, 1_000]] }, // biome-ignore format: one member a line
          { variation: "b", ...half, ranges: [[5_000, 10_000]] },
        ],
      },
      "/serve/split/0/ranges must be ascending",
    ],
    ["with a range beyond 10,000", withRanges({ a: [[0, 10_001]] }), "/serve"],
    [
      "with the variation of another kind of serve",
      { ...splitOf({ a: 100 }), variation: "a" },
      "/serve",
    ],
  ])("%s", async (_, serve, message) => {
    const flag = await createTyped();
    const answer = await serving(flag.id, serve);
    expect([answer.status, answer.body.error.code]).toEqual([400, "VALIDATION_001"]);
    expect(answer.body.error.message).toContain(message);
  });

  it.each<[string, object, string]>([
    [
      "serves an unknown variation",
      { serve: { variation: "none" } },
      "/serve/variation must be the key of a variation of the flag",
    ],
    [
      "has an unknown off_variation",
      { off_variation: "none" },
      "/off_variation must be the key of a variation of the flag",
    ],
    [
      "has an unknown variation in a rule",
      { targeting_rules: [ruleWith({ variation: "none" })] },
      "/targeting_rules/0/serve/variation must be the key",
    ],
    [
      "has a rule with serve and the value false",
      { targeting_rules: [ruleWith({ variation: "a" }, { value: false })] },
      "/targeting_rules/0/serve must be absent",
    ],
    [
      "has a rule with an invalid split",
      { targeting_rules: [ruleWith(splitOf({ a: 1 }))] },
      "/targeting_rules/0/serve/split must have weights",
    ],
    [
      "has two rules with the same id",
      {
        targeting_rules: [
          ruleWith({ variation: "a" }, { id: "r" }),
          ruleWith({ variation: "b" }, { id: "r" }),
        ],
      },
      "/targeting_rules/1/id must be unique in the state",
    ],
  ])("because the state %s", async (_, body, message) => {
    const flag = await createTyped();
    for (const path of [`/api/v1/flags/${flag.id}`, stateOf(flag.id)]) {
      const answer = await flags.patch(path, body);
      expect([answer.status, answer.body.error.code]).toEqual([400, "VALIDATION_001"]);
      expect(answer.body.error.message).toContain(message);
    }
  });
});

describe("a change of weights", () => {
  it("moves only the difference", async () => {
    const flag = await createTyped({ serve: splitOf({ a: 34, b: 33, c: 33 }) });
    const { body } = await serving(flag.id, splitOf({ a: 40, b: 30, c: 30 }));
    expect(body.serve).toEqual(
      withRanges({
        a: [
          [0, 3_400],
          [6_400, 6_700],
          [9_700, 10_000],
        ],
        b: [[3_400, 6_400]],
        c: [[6_700, 9_700]],
      }),
    );
  });

  it("keeps the users of a variation that all users had", async () => {
    const flag = await createTyped({ serve: { variation: "b" } });
    const { body } = await serving(flag.id, splitOf({ a: 40, b: 60 }));
    expect(body.serve).toEqual(withRanges({ a: [[6_000, 10_000]], b: [[0, 6_000]] }));
  });

  it("changes nothing if the weights stay the same", async () => {
    const flag = await createTyped({ serve: splitOf({ a: 50, b: 50 }) });
    await serving(flag.id, splitOf({ a: 20, b: 80 }));
    const { body } = await serving(flag.id, splitOf({ a: 50, b: 50 }));
    const again = await serving(flag.id, splitOf({ a: 50, b: 50 }));
    expect(again.body).toEqual(body);
  });

  it("does not compute buckets if the request has ranges, whose neighbors are merged", async () => {
    const flag = await createTyped({ serve: splitOf({ a: 50, b: 50 }) });
    const { body } = await serving(flag.id, {
      split: [
        // biome-ignore format: one range after the other
        { variation: "a", weight: 50, ranges: [[5_000, 6_000], [6_000, 10_000]] },
        { variation: "b", weight: 50, ranges: [[0, 5_000]] },
      ],
    });
    expect(body.serve).toEqual(withRanges({ a: [[5_000, 10_000]], b: [[0, 5_000]] }));
  });

  it("that would divide a split into more than 500 ranges asks for explicit ranges", async () => {
    const even = Array.from({ length: 250 }, (_, at): Range => [2 * at, 2 * at + 1]);
    const odd = even.map(([from, to]): Range => [from + 1, to + 1]);
    odd[249] = [499, 10_000];
    const flag = await createTyped({ serve: withRanges({ a: even, b: odd }) });
    const rejected = await serving(flag.id, splitOf({ a: 50, b: 50 }));
    expect([rejected.status, rejected.body.error.code]).toEqual([409, "CONFLICT_001"]);
    expect(rejected.body.error.message).toContain("/serve: the split would have 501 ranges");
    const explicit = withRanges({ a: [[0, 5_000]], b: [[5_000, 10_000]] });
    expect((await serving(flag.id, explicit)).body.serve).toEqual(explicit);
  });
});

describe("the split of a rule", () => {
  const changeRule = (flagId: string, rule: object) =>
    flags.patch(`/api/v1/flags/${flagId}`, { targeting_rules: [rule] });

  it("is found by the id of the rule, which the service makes where it is absent", async () => {
    const flag = await createTyped({ targeting_rules: [ruleWith(splitOf({ a: 50, b: 50 }))] });
    const [{ id }] = flag.targeting_rules;
    expect(id).toEqual(expect.any(String));
    const { body } = await changeRule(flag.id, ruleWith(splitOf({ b: 60, a: 40 }), { id }));
    expect(body.targeting_rules).toMatchObject([
      {
        id,
        serve: withRanges({
          b: [[4_000, 10_000]],
          a: [[0, 4_000]],
        }),
      },
    ]);
  });

  it("starts with what the state served, if the rule had nothing of its own", async () => {
    const flag = await createTyped({
      serve: { variation: "b" },
      targeting_rules: [{ ...ruleWith(undefined), id: "germany" }],
    });
    const rule = ruleWith(splitOf({ a: 10, b: 90 }), { id: "germany" });
    const { body } = await changeRule(flag.id, rule);
    expect(body.targeting_rules[0].serve).toEqual(
      withRanges({ a: [[9_000, 10_000]], b: [[0, 9_000]] }),
    );
  });

  it("of a rule without an id is allocated from scratch", async () => {
    const flag = await createTyped({ targeting_rules: [ruleWith(splitOf({ a: 50, b: 50 }))] });
    const { body } = await changeRule(flag.id, ruleWith(splitOf({ b: 60, a: 40 })));
    expect(body.targeting_rules[0].serve).toEqual(
      withRanges({ b: [[0, 6_000]], a: [[6_000, 10_000]] }),
    );
  });
});

describe("a rollback", () => {
  const rollBack = (flagId: string) =>
    management.call(`${stateOf(flagId)}/rollback`, { method: "POST", key });

  it("restores the ranges of the earlier split", async () => {
    const flag = await createTyped({ serve: splitOf({ a: 34, b: 33, c: 33 }) });
    const { body: earlier } = await serving(flag.id, splitOf({ a: 40, b: 30, c: 30 }));
    await serving(flag.id, splitOf({ a: 10, b: 45, c: 45 }));
    expect((await rollBack(flag.id)).status).toBe(200);
    const { body } = await management.call(stateOf(flag.id), { key });
    expect(body.serve).toEqual(earlier.serve);
    await expectWholeHistory(management.sql);
  });

  it("to a state with a variation that the flag no longer has is a conflict that names it", async () => {
    const flag = await createTyped({ serve: splitOf({ a: 50, c: 50 }), off_variation: null });
    await serving(flag.id, { variation: "a" });
    await flags.patch(stateOf(flag.id, project.otherEnvironmentId), { off_variation: null });
    const fewer = { variations: variations.slice(0, 2) };
    expect((await flags.patch(`/api/v1/flags/${flag.id}`, fewer)).status).toBe(200);
    const answer = await rollBack(flag.id);
    expect([answer.status, answer.body.error.code]).toEqual([409, "CONFLICT_001"]);
    expect(answer.body.error.message).toContain("the variation c");
  });
});
