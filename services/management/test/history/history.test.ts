import { randomUUID } from "node:crypto";
import { afterAll, describe, expect, it } from "@jest/globals";
import { flagsOf } from "../flag-fixture.ts";
import { openManagement, operatorToken, seedProject } from "../management-fixture.ts";

const management = await openManagement();
afterAll(() => management.close());
const project = await seedProject(management);
const key = project.serverKey;
const flags = flagsOf(management, project);

const pathOf = (flagId: string, environmentId = project.environmentId) =>
  `/api/v1/flags/${flagId}/environments/${environmentId}/history`;

const read = (flagId: string, query = "") => management.call(pathOf(flagId) + query, { key });

/** Creates a flag with `count` entries. Each change decreases the rollout percentage by one. */
async function flagWithEntries(count: number) {
  const flag = await flags.createFlag();
  for (let percentage = 99; percentage > 100 - count; percentage -= 1)
    await flags.patch(`/api/v1/flags/${flag.id}`, { rollout_percentage: percentage });
  return flag;
}

const percentagesOf = (answer: { body: { history: { rollout_percentage: number }[] } }) =>
  answer.body.history.map((entry) => entry.rollout_percentage);

describe("the history of a flag in an environment", () => {
  it("begins with the flag, and contains the complete state after each change", async () => {
    const flag = await flags.createFlag();
    const rules = [{ conditions: [{ attribute: "country", operator: "equals", value: "AT" }] }];
    await flags.patch(`/api/v1/flags/${flag.id}`, { enabled: true });
    const changed = await flags.patch(`/api/v1/flags/${flag.id}`, {
      rollout_percentage: 20,
      targeting_rules: rules,
    });
    const answer = await read(flag.id);
    expect(answer.status).toBe(200);
    const common = {
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      changed_by: project.userId,
      change_type: "manual",
    };
    expect(answer.body).toEqual({
      history: [
        {
          ...common,
          enabled: true,
          rollout_percentage: 20,
          targeting_rules: rules,
          changed_at: changed.body.updated_at,
        },
        {
          ...common,
          enabled: true,
          rollout_percentage: 100,
          targeting_rules: [],
          changed_at: expect.any(String),
        },
        {
          ...common,
          enabled: false,
          rollout_percentage: 100,
          targeting_rules: [],
          changed_at: flag.created_at,
        },
      ],
    });
  });

  it("is separate for each environment", async () => {
    const flag = await flags.createFlag();
    await flags.patch(`/api/v1/flags/${flag.id}`, { enabled: true });
    const other = await management.call(pathOf(flag.id, project.otherEnvironmentId), { key });
    expect(other.body.history).toMatchObject([{ enabled: false }]);
  });

  it("has no entry for a change of the name or for an unchanged field", async () => {
    const flag = await flags.createFlag();
    await flags.patch(`/api/v1/flags/${flag.id}`, { name: "Other", enabled: false });
    expect((await read(flag.id)).body.history).toHaveLength(1);
  });

  it("returns the last 20 entries and no other field by default", async () => {
    const flag = await flagWithEntries(23);
    const answer = await read(flag.id);
    expect(Object.keys(answer.body)).toEqual(["history"]);
    expect(percentagesOf(answer)).toEqual(Array.from({ length: 20 }, (_, index) => 78 + index));
  });

  it("is paginated back to its beginning", async () => {
    const flag = await flagWithEntries(7);
    const first = await read(flag.id, "?limit=3");
    expect(percentagesOf(first)).toEqual([94, 95, 96]);
    expect(first.body.next_before).toBe(first.body.history[2].id);
    const second = await read(flag.id, `?limit=3&before=${first.body.next_before}`);
    expect(percentagesOf(second)).toEqual([97, 98, 99]);
    const last = await read(flag.id, `?limit=3&before=${second.body.next_before}`);
    expect(percentagesOf(last)).toEqual([100]);
    expect(last.body.next_before).toBeNull();
    const end = await read(flag.id, `?before=${last.body.history[0].id}`);
    expect(end.body).toEqual({ history: [], next_before: null });
    expect((await read(flag.id, "?limit=7")).body.next_before).toBeNull();
  });

  it("ends a page early to limit its size", async () => {
    const flag = await flags.createFlag();
    const rule = { conditions: [{ attribute: "a", operator: "in", value: [] as string[] }] };
    const rules = Array.from({ length: 40 }, () => structuredClone(rule));
    for (const { conditions } of rules)
      conditions[0]?.value.push(...Array.from({ length: 10 }, () => "x".repeat(1_000)));
    await flags.patch(`/api/v1/flags/${flag.id}`, { targeting_rules: rules });
    for (let percentage = 0; percentage < 45; percentage += 1)
      await flags.patch(`/api/v1/flags/${flag.id}`, { rollout_percentage: percentage });

    const seen: number[] = [];
    const lengths: number[] = [];
    for (let before: string | null = ""; before !== null; ) {
      const page = await read(flag.id, `?limit=1000${before && `&before=${before}`}`);
      seen.push(...percentagesOf(page));
      lengths.push(page.body.history.length);
      before = page.body.next_before;
    }
    expect(seen).toEqual([...Array.from({ length: 45 }, (_, index) => 44 - index), 100, 100]);
    expect(lengths.length).toBeGreaterThan(1);
    expect(lengths[0]).toBeGreaterThanOrEqual(20);
  });

  it("is in the order of writing, regardless of clocks", async () => {
    const flag = await flags.createFlag();
    management.clock.now = () => new Date(Date.now() - 3_600_000);
    try {
      await flags.patch(`/api/v1/flags/${flag.id}`, { rollout_percentage: 1 });
    } finally {
      management.clock.now = () => new Date();
    }
    await flags.patch(`/api/v1/flags/${flag.id}`, { rollout_percentage: 2 });
    expect(percentagesOf(await read(flag.id))).toEqual([2, 1, 100]);
  });
});

describe("reading the history", () => {
  it("is allowed to the operator for every project", async () => {
    const flag = await flags.createFlag();
    const answer = await management.call(pathOf(flag.id), { key: operatorToken });
    expect(answer.body).toEqual((await read(flag.id)).body);
  });

  it("is forbidden for a client key", async () => {
    const flag = await flags.createFlag();
    const answer = await management.call(pathOf(flag.id), { key: project.clientKey });
    expect(answer.status).toBe(403);
    expect(answer.body.error.code).toBe("AUTH_002");
    expect((await management.call(pathOf(flag.id))).status).toBe(401);
  });

  it("is limited to the key's environment for an environment_only key", async () => {
    const flag = await flags.createFlag();
    const at = (environmentId: string) =>
      management.call(pathOf(flag.id, environmentId), { key: project.environmentOnlyKey });
    expect((await at(project.environmentId)).status).toBe(200);
    const rejected = await at(project.otherEnvironmentId);
    expect(rejected.status).toBe(403);
    expect(rejected.body.error.code).toBe("AUTH_002");
  });
});

describe("an invalid request for the history", () => {
  it.each([
    ["limit=0", "/limit"],
    ["limit=1001", "/limit"],
    ["limit=ten", "/limit"],
    ["limit=1&limit=2", "/limit"],
    ["before=nonsense", "/before must be an id"],
    ["before=", "/before must be an id"],
    ["after=1", "/after"],
  ])("is rejected for ?%s, naming %s", async (query, parameter) => {
    const flag = await flags.createFlag();
    const answer = await read(flag.id, `?${query}`);
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({ code: "VALIDATION_001" });
    expect(answer.body.error.message).toContain(`query parameter ${parameter}`);
  });

  it("is rejected for an entry of another flag or environment, and for an unknown entry", async () => {
    const [flag, other] = [await flags.createFlag(), await flags.createFlag()];
    const inOther = await management.call(pathOf(flag.id, project.otherEnvironmentId), { key });
    for (const before of [
      (await read(other.id)).body.history[0].id,
      inOther.body.history[0].id,
      randomUUID(),
    ]) {
      const answer = await read(flag.id, `?before=${before}`);
      expect(answer.status).toBe(400);
      expect(answer.body.error.message).toContain("query parameter /before");
    }
  });
});
