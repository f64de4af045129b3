import { bucketOf, compile, contextOf } from "@halyard/evaluation";
import { afterAll, describe, expect, it } from "@jest/globals";
import { flagsOf } from "../flag-fixture.ts";
import { openManagement, seedProject } from "../management-fixture.ts";

/** Tests how states select users for percentages: decimals, the attribute of the bucket, and the seed. */

const management = await openManagement();
afterAll(() => management.close());
const project = await seedProject(management);
const { createFlag, patch, historyOf, flagEntriesOf, freshKey } = flagsOf(management, project);
const pathOf = ({ id }: { id: string }) => `/api/v1/flags/${id}`;

const explain = async (flag: { id: string }, body: object) => {
  const path = `${pathOf(flag)}/environments/${project.environmentId}/explain`;
  return (await management.call(path, { method: "POST", key: project.serverKey, body })).body;
};

/** Returns the first of many users who meet a condition. */
function userWhere(holds: (user: string) => boolean): string {
  for (let number = 0; ; number += 1) if (holds(`user-${number}`)) return `user-${number}`;
}

describe("the members of a state about buckets", () => {
  it("are absent until they are set, and again when they are null", async () => {
    const flag = await createFlag();
    expect(Object.keys(flag)).not.toContain("bucket_by");
    const set = await patch(pathOf(flag), { bucket_by: "company", bucket_seed: "spring" });
    expect(set.body).toMatchObject({ bucket_by: "company", bucket_seed: "spring", version: 2 });
    const reset = await patch(pathOf(flag), { bucket_by: null, bucket_seed: null });
    expect(reset.body).toEqual({ ...flag, version: 3, updated_at: reset.body.updated_at });
    expect(await historyOf(flag.id)).toMatchObject([{}, { bucket_by: "company" }, {}]);
  });

  it.each(["id", "user_id", "targetingKey"])(
    "have no name of the id: %s is the default",
    async (name) => {
      const flag = await createFlag({ bucket_by: name });
      expect(flag).not.toHaveProperty("bucket_by");
    },
  );

  it.each([0.07, 12.25, 99.99])("accept %d percent, and return it", async (rollout_percentage) => {
    const rules = [{ conditions: [], rollout_percentage }];
    const flag = await createFlag({ rollout_percentage, targeting_rules: rules });
    expect(flag).toMatchObject({ rollout_percentage, targeting_rules: rules });
  });

  it("keep 12.10 percent from the request to the evaluator", async () => {
    const flagKey = freshKey();
    const rule = '{"id":"all","conditions":[],"rollout_percentage":12.10}';
    const created = await management.call("/api/v1/flags", {
      ...{ method: "POST", key: project.serverKey },
      headers: { "content-type": "application/json" },
      text: `{"key":"${flagKey}","name":"A","enabled":true,"rollout_percentage":12.10,"targeting_rules":[${rule}]}`,
    });
    const state = {
      rollout_percentage: 12.1,
      targeting_rules: [{ id: "all", conditions: [], rollout_percentage: 12.1 }],
    };
    const { id } = created.body;
    const read = await management.call(pathOf({ id }), { key: project.serverKey });
    const [inHistory] = await historyOf(id);
    const [entry] = await flagEntriesOf(id);
    for (const held of [created.body, read.body, inHistory, entry])
      expect(held).toMatchObject(state);
    const users = [1_209, 1_210].map((bucket) =>
      userWhere((user) => bucketOf(flagKey, user) === bucket),
    );
    for (const flag of [entry, { ...entry, targeting_rules: [] }])
      expect(users.map((user) => compile(flag).evaluate(contextOf({ id: user })).value)).toEqual([
        ...[true, false],
      ]);
  });

  it.each([
    [
      { rollout_percentage: 12.345 },
      "/rollout_percentage must be a number from 0 to 100 with at most two decimals",
    ],
    [
      { targeting_rules: [{ conditions: [], rollout_percentage: 0.001 }] },
      "/targeting_rules/0/rollout_percentage must be",
    ],
    [{ bucket_by: "" }, "/bucket_by must"],
    [{ bucket_seed: "x".repeat(129) }, "/bucket_seed must"],
    [
      {
        targeting_rules: [
          { conditions: [{ attribute: "a", operator: "gt", value: 1, match_case: true }] },
        ],
      },
      "/targeting_rules/0/conditions/0/match_case must be absent for this operator",
    ],
  ])("reject %j", async (body, message) => {
    const flag = await createFlag();
    const answer = await patch(pathOf(flag), body);
    expect(answer.status).toBe(400);
    expect(answer.body.error.message).toContain(message);
  });
});

describe("the explanation of a percentage", () => {
  it("has the bucket of the attribute, with the seed", async () => {
    // The bucket of `new-checkout:user-913` is 999, by a program that was checked against published vectors.
    const flag = await createFlag({
      enabled: true,
      rollout_percentage: 9.99,
      bucket_by: "company",
      bucket_seed: "new-checkout",
    });
    const user = { id: "someone", attributes: { company: "user-913" } };
    expect(await explain(flag, { user })).toMatchObject({
      value: false,
      trace: { split: { percentage: 9.99, bucket: 999 } },
    });
    expect(await explain(flag, { user, state: { rollout_percentage: 10 } })).toMatchObject({
      value: true,
    });
    expect(await explain(flag, { user: { id: "someone" } })).toMatchObject({
      value: false,
      reason: "split",
      trace: { split: { bucket: null } },
    });
  });
});
