import { randomUUID } from "node:crypto";
import { eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import { explainFlag } from "../../src/flags/explain-flag.ts";
import type { FlagInEnvironment } from "../../src/flags/flag.ts";
import type { CheckedRules } from "../../src/flags/targeting-rules.ts";
import { openManagement, seedProject } from "../management-fixture.ts";
import { booleanFlag } from "./boolean-flag.ts";

/** Tests the explanation of a flag for a user, including settings that are not stored. */
const logged: string[] = [];

const rules = [
  {
    name: "Staff",
    conditions: [{ attribute: "email", operator: "ends_with", value: "@a.example" }],
  },
  {
    conditions: [{ attribute: "country", operator: "equals", value: "DE" }],
    rollout_percentage: 50,
  },
];

const logger = pino({ level: "trace" }, { write: (line: string) => logged.push(line) });
const management = await openManagement({ logger });
afterAll(() => management.close());
const project = await seedProject(management);
const created = await management.call("/api/v1/flags", {
  method: "POST",
  key: project.serverKey,
  body: { key: "express-delivery", name: "A flag", enabled: true, targeting_rules: rules },
});
const path = `/api/v1/flags/${created.body.id}/environments/${project.environmentId}`;

const explain = (body: unknown, key = project.serverKey, of = path) =>
  management.call(`${of}/explain`, { method: "POST", key, body });

/** Rules of 24 KiB, so that a request with them is large. */
const largeRules = [
  {
    conditions: [
      {
        attribute: "id",
        operator: "in",
        value: Array.from({ length: 1_000 }, (_, index) => `${index}`.padStart(20, "u")),
      },
    ],
  },
];

describe("given a large change of an organization that is being made", () => {
  it("handles its large changes and explanations afterwards, and all other requests meanwhile", async () => {
    const other = await seedProject(management);
    const small = await management.call("/api/v1/flags", {
      ...{ method: "POST", key: project.serverKey, body: { key: "blocked", name: "A flag" } },
    });
    const ended: string[] = [];
    const send = async (name: string, sent: ReturnType<typeof management.call>) =>
      ended.push(`${name} ${(await sent).status}`);
    const create = (flagKey: string, key: string, targeting_rules: object[]) =>
      management.call("/api/v1/flags", {
        ...{ method: "POST", key, body: { key: flagKey, name: "A flag", targeting_rules } },
      });
    const isWaiting = async () => {
      const [waiting] = await management.sql<[{ count: number }]>`
        select count(*)::integer as count from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      return waiting.count > 0;
    };
    const sent: Promise<unknown>[] = [];
    await management.sql.begin(async (tx) => {
      await tx`select from flags where id = ${small.body.id} for update`;
      const change = management.call(`/api/v1/flags/${small.body.id}`, {
        ...{ method: "PATCH", key: project.serverKey, body: { targeting_rules: largeRules } },
      });
      sent.push(send("change", change));
      await eventually(isWaiting);
      sent.push(send("later", create("large", project.environmentOnlyKey, largeRules)));
      sent.push(
        send(
          "later",
          explain({}).then((given) => ({ ...given, status: 201 })),
        ),
      );
      await send("small", create("small", project.serverKey, []));
      await send("of others", create("large", other.serverKey, largeRules));
    });
    await Promise.all(sent);
    expect(ended).toEqual(["small 201", "of others 201", "change 200", "later 201", "later 201"]);
  });
});

describe("the time of an explanation", () => {
  it("is reported, so that it can be charged", async () => {
    const conditions = Array.from({ length: 50 }, (_, index) => ({
      ...{ attribute: "text", operator: "contains" as const, value: `${index}-is-not-in-it` },
    }));
    const content = {
      enabled: true,
      rollout_percentage: 100,
      targeting_rules: Array.from({ length: 100 }, () => ({ conditions })) as CheckedRules,
    };
    const used: number[] = [];
    const beganMs = performance.now();
    await explainFlag(
      management.sql,
      { flag: { key: "slow", ...booleanFlag }, state: { content } } as FlagInEnvironment,
      {
        user: { attributes: { text: "x".repeat(10_000) } },
        changed: {},
        newId: randomUUID,
        onUsed: (ms) => used.push(ms),
      },
    );
    const sum = used.reduce((total, ms) => total + ms, 0);
    expect(sum).toBeGreaterThan(0);
    expect(sum).toBeLessThanOrEqual(performance.now() - beganMs);
  });
});

describe("explaining a flag", () => {
  it("returns the value, the result of each rule and condition, and the bucket of a split", async () => {
    const { status, body } = await explain({ user: { id: "u-1", attributes: { country: "DE" } } });
    expect(status).toBe(200);
    expect(body).toEqual({
      value: true,
      variation: "on",
      reason: "split",
      trace: {
        enabled: true,
        rollout_percentage: 100,
        rules: [
          {
            index: 0,
            name: "Staff",
            reached: true,
            matched: false,
            conditions: [
              {
                attribute: "email",
                operator: "ends_with",
                held: false,
                obstacle: "attribute_missing",
              },
            ],
          },
          {
            index: 1,
            reached: true,
            matched: true,
            inside_percentage: true,
            conditions: [{ attribute: "country", operator: "equals", held: true }],
          },
        ],
        split: { percentage: 50, bucket: 76 },
      },
    });
  });

  it("reads the user like the SDK endpoints: its id, then its attributes, then its other members", async () => {
    const user = { id: "u-2", country: "FR", attributes: { id: "u-1", country: "DE" } };
    expect((await explain({ user })).body).toMatchObject({
      value: false,
      trace: { split: { percentage: 50, bucket: 7234 } },
    });
    const anonymous = await explain({ user: { country: "DE" } });
    expect(anonymous.body.trace.split).toEqual({ percentage: 50, bucket: null });
    expect((await explain({})).body.reason).toBe("default");
  });

  it("tries settings that are not stored, and stores nothing", async () => {
    const before = (await management.call(path, { key: project.serverKey })).body;
    const user = { id: "u-1" };
    expect((await explain({ user, state: { enabled: false } })).body).toMatchObject({
      reason: "disabled",
      trace: { enabled: false },
    });
    const state = { targeting_rules: [], rollout_percentage: 1 };
    expect((await explain({ user, state })).body).toMatchObject({
      reason: "split",
      value: true,
      trace: { rules: [], split: { percentage: 1, bucket: 76 } },
    });
    expect((await management.call(path, { key: project.serverKey })).body).toEqual(before);
  });

  it("rejects settings that could not be stored, and invalid users", async () => {
    const condition = { attribute: "a", operator: "matches_regex", value: "(" };
    const state = { targeting_rules: [{ conditions: [condition] }] };
    const rejected = await explain({ state });
    expect(rejected.body.error).toMatchObject({ code: "VALIDATION_001" });
    expect(rejected.body.error.message).toContain("/state/targeting_rules/0/conditions/0/value");
    for (const user of [
      { marked: {} },
      { marked: [{}] },
      { attributes: { marked: {} } },
      { attributes: { marked: ["a", [1]] } },
    ])
      expect((await explain({ user })).body.error.message).toMatch(
        /^\/user(\/attributes)? has a member that must be (?!.*marked)/,
      );
    expect((await explain({ user: { id: {} } })).body.error.message).toMatch(/^\/user\/id must be/);
    for (const body of [{ user: { a: {} } }, { user: 1 }, { state: { name: "x" } }, { users: {} }])
      expect((await explain(body)).body.error.code).toBe("VALIDATION_001");
  });

  it("is limited to server keys of the project and the environment of the key", async () => {
    expect((await explain({}, project.clientKey)).body.error.code).toBe("AUTH_002");
    const other = path.replace(project.environmentId, project.otherEnvironmentId);
    expect((await explain({}, project.serverKey, other)).status).toBe(200);
    const bound = await explain({}, project.environmentOnlyKey, other);
    expect(bound.body.error.code).toBe("AUTH_002");
    expect((await explain({}, project.environmentOnlyKey)).status).toBe(200);
    const stranger = await seedProject(management);
    expect((await explain({}, stranger.serverKey)).body.error.code).toBe("NOT_FOUND_001");
  });

  it("neither logs nor stores the user, and returns no values of the user", async () => {
    const user = { id: "private-1", attributes: { email: "private-2", "private-3": "private-4" } };
    const valid = await explain({ user });
    expect(JSON.stringify(valid.body)).not.toContain("private");
    expect((await explain({ user: { ...user, "private-5": {} } })).status).toBe(400);
    expect(logged.join("")).not.toContain("private-");
    expect(logged.length).toBeGreaterThan(0);
  });
});
