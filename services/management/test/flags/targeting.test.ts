import { afterAll, describe, expect, it } from "@jest/globals";
import postgres from "postgres";
import { flagsOf } from "../flag-fixture.ts";
import { openManagement, seedProject } from "../management-fixture.ts";
import { entriesOf } from "../tenancy-fixture.ts";

/** Tests the effects of accepted rollouts and rules on the flag, its history, its events and its snapshot entries. */

const management = await openManagement();
const project = await seedProject(management);
const flags = flagsOf(management, project);
const key = project.serverKey;
/** A connection that can write data that the service would reject. */
const asOwner = postgres(management.adminUrl, { max: 1 });
afterAll(async () => {
  await asOwner.end();
  await management.close();
});

const germans = [
  {
    id: "germans",
    name: "A fifth of Germany",
    conditions: [{ attribute: "country", operator: "equals", value: "DE" }],
    value: true,
    rollout_percentage: 20,
  },
];
const staff = [
  { conditions: [{ attribute: "email", operator: "ends_with", value: "@example.com" }] },
  { conditions: [], rollout_percentage: 5 },
];

const entries = (flagId: string, environmentId: string) =>
  entriesOf(management, `${project.organizationId}.flag.${environmentId}.${flagId}`);

describe("given a flag that is created with rollout and rules", () => {
  it("has them in the key's environment only", async () => {
    const settings = { enabled: true, rollout_percentage: 25, targeting_rules: germans };
    const flag = await flags.createFlag(settings);
    expect(flag).toMatchObject(settings);
    const other = await management.call(
      `/api/v1/flags/${flag.id}/environments/${project.otherEnvironmentId}`,
      { key },
    );
    expect(other.body).toMatchObject({
      enabled: false,
      rollout_percentage: 100,
      targeting_rules: [],
    });
    expect(await flags.eventsOf(flag.id)).toMatchObject([
      { event: "flag.created", state: settings, state_before: null },
    ]);
    expect(await entries(flag.id, project.environmentId)).toMatchObject([settings]);
    expect(await entries(flag.id, project.otherEnvironmentId)).toMatchObject([
      { enabled: false, rollout_percentage: 100, targeting_rules: [] },
    ]);
    expect(await flags.historyOf(flag.id)).toMatchObject([settings]);
  });
});

describe("given a change of rollout or rules", () => {
  const ways: [way: string, path: (id: string) => string, environment: () => string][] = [
    ["on the flag", (id) => `/api/v1/flags/${id}`, () => project.environmentId],
    [
      "in the key's environment",
      (id) => `/api/v1/flags/${id}/environments/${project.environmentId}`,
      () => project.environmentId,
    ],
    [
      "in another environment",
      (id) => `/api/v1/flags/${id}/environments/${project.otherEnvironmentId}`,
      () => project.otherEnvironmentId,
    ],
  ];
  const changes = [
    { rollout_percentage: 5 },
    { targeting_rules: germans },
    { rollout_percentage: 0, targeting_rules: staff },
  ];
  const before = { enabled: false, rollout_percentage: 100, targeting_rules: [] };
  const cases = ways.flatMap((way) =>
    changes.flatMap((change) =>
      ["PATCH", "PUT"].map(
        (method) => [Object.keys(change).join(" and "), ...way, method, change] as const,
      ),
    ),
  );

  it.each(cases)("publishes %s set %s", async (_what, _way, path, environment, method, change) => {
    const flag = await flags.createFlag();
    const changed = await management.call(path(flag.id), { method, key, body: change });
    const state = { ...before, ...change };
    expect(changed.status).toBe(200);
    expect(changed.body).toMatchObject({ ...state, version: 2 });
    const [, event, ...more] = await flags.eventsOf(flag.id);
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      event: "flag_state.updated",
      version: 2,
      environment: { id: environment() },
      state,
      state_before: before,
      cause: "manual",
    });
    expect(await entries(flag.id, environment())).toMatchObject([
      { ...before, version: 1 },
      { ...state, version: 2 },
    ]);
  });

  it.each(ways)("publishes both events in order if it also toggles, %s", async (_, path) => {
    const flag = await flags.createFlag();
    await flags.patch(path(flag.id), { targeting_rules: germans, enabled: true });
    const events = await flags.eventsOf(flag.id);
    expect(events.map(({ event }) => event)).toEqual([
      "flag.created",
      "flag.toggled",
      "flag_state.updated",
    ]);
    const [, toggled, updated] = events;
    expect(Date.parse(updated.timestamp) - Date.parse(toggled.timestamp)).toBe(1);
    expect(updated.state).toEqual({ ...before, enabled: true, targeting_rules: germans });
    expect([toggled.state, toggled.version]).toEqual([updated.state, updated.version]);
  });

  it("adds one history entry and one audit entry with both states", async () => {
    const flag = await flags.createFlag({ targeting_rules: germans });
    await flags.patch(`/api/v1/flags/${flag.id}`, { targeting_rules: staff, enabled: true });
    expect(await flags.historyOf(flag.id)).toMatchObject([
      { enabled: false, targeting_rules: germans },
      { enabled: true, targeting_rules: staff },
    ]);
    const audited = await asOwner`
      select state_before, state_after from management.changes
      where flag_id = ${flag.id} and action = 'state'`;
    expect(audited).toMatchObject([
      { state_before: { targeting_rules: germans }, state_after: { targeting_rules: staff } },
    ]);
  });

  it("has no effect if only the order of the rules' fields differs", async () => {
    const flag = await flags.createFlag({ targeting_rules: germans });
    const reordered = germans.map((rule) => Object.fromEntries(Object.entries(rule).reverse()));
    const answer = await flags.patch(`/api/v1/flags/${flag.id}`, { targeting_rules: reordered });
    expect(answer.headers.get("etag")).toBe('"1"');
    expect(await flags.eventsOf(flag.id)).toHaveLength(1);
  });

  it("has an effect if the order of the rules differs", async () => {
    const flag = await flags.createFlag({ targeting_rules: staff });
    const reversed = [...staff].reverse();
    const answer = await flags.patch(`/api/v1/flags/${flag.id}`, { targeting_rules: reversed });
    expect(answer.body.targeting_rules).toEqual(reversed);
    expect(answer.body.version).toBe(2);
  });

  it("has no effect if only the notation of a number differs", async () => {
    const flag = await flags.createFlag({
      rollout_percentage: 0,
      targeting_rules: [{ conditions: [{ attribute: "id", operator: "in", value: [0, 1] }] }],
    });
    const answer = await fetch(`${management.url}/api/v1/flags/${flag.id}`, {
      method: "PATCH",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: '{"rollout_percentage":-0,"targeting_rules":[{"conditions":[{"operator":"in","attribute":"id","value":[-0,1.0]}]}]}',
    });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("etag")).toBe('"1"');
  });

  it("keeps every message below 1 MiB, the default limit of a NATS server", async () => {
    const fitting = (letter: string) =>
      Array.from({ length: 48 }, () => ({
        conditions: [{ attribute: "id", operator: "equals", value: letter.repeat(10_000) }],
      }));
    const flag = await flags.createFlag({
      targeting_rules: fitting("a"),
      description: "€".repeat(2_000),
    });
    const changed = await flags.patch(`/api/v1/flags/${flag.id}`, {
      targeting_rules: fitting("b"),
    });
    expect(changed.status).toBe(200);
    const [row] = await management.sql`select max(octet_length(payload)) as bytes from outbox`;
    expect(row?.bytes).toBeGreaterThan(960_000);
    expect(row?.bytes).toBeLessThan(1024 * 1024 - 1024);
  });
});

describe("given stored rules that are invalid under the current validation", () => {
  const odd = [
    { conditions: [{ attribute: "a", operator: "matches_regex", value: "(" }] },
    { conditions: [{ attribute: "a", operator: "semver_gt", value: "latest" }] },
  ];

  async function flagWithOddRules() {
    const flag = await flags.createFlag();
    await asOwner`
      update management.flag_states
      set content = content || ${asOwner.json({ targeting_rules: odd })}
      where flag_id = ${flag.id} and environment_id = ${project.environmentId}`;
    return flag;
  }

  it("returns them from every route", async () => {
    const flag = await flagWithOddRules();
    const path = `/api/v1/flags/${flag.id}`;
    const own = await management.call(path, { key });
    expect(own.body.targeting_rules).toEqual(odd);
    const state = await management.call(`${path}/environments/${project.environmentId}`, { key });
    expect(state.body.targeting_rules).toEqual(odd);
    const { status, body } = await management.call("/api/v1/flags", { key });
    expect(status).toBe(200);
    expect(body.flags.find(({ id }: { id: string }) => id === flag.id).targeting_rules).toEqual(
      odd,
    );
  });

  it("toggles the flag, and allows replacing the rules and deleting the flag", async () => {
    const flag = await flagWithOddRules();
    const path = `/api/v1/flags/${flag.id}`;
    const toggled = await flags.patch(path, { enabled: true });
    expect(toggled.body).toMatchObject({ enabled: true, targeting_rules: odd });
    const replaced = await flags.patch(path, { targeting_rules: staff });
    expect(replaced.body.targeting_rules).toEqual(staff);
    expect((await flags.eventsOf(flag.id)).at(-1)).toMatchObject({
      event: "flag_state.updated",
      state_before: { targeting_rules: odd },
      state: { targeting_rules: staff },
    });
    expect((await management.call(path, { method: "DELETE", key })).status).toBe(204);
  });

  it("rejects the same rules in a request", async () => {
    const flag = await flagWithOddRules();
    const answer = await flags.patch(`/api/v1/flags/${flag.id}`, { targeting_rules: odd });
    expect(answer.status).toBe(400);
  });
});
