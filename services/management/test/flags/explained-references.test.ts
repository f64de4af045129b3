import { afterAll, describe, expect, it } from "@jest/globals";
import postgres from "postgres";
import { audiencesOf } from "../audiences/audience-fixture.ts";
import { openManagement, seedProject } from "../management-fixture.ts";
import { problemOf, referringFlagsOf } from "./references-fixture.ts";

/** Tests the explanation of flags that refer to audiences and other flags. */

const management = await openManagement();
const asOwner = postgres(management.adminUrl, { max: 1 });
afterAll(async () => {
  await asOwner.end();
  await management.close();
});
const project = await seedProject(management);
const { createFlag, createChain, patch, pathOf, stateOf } = referringFlagsOf(management, project);
const isBeta = { attribute: "plan", operator: "equals", value: "beta" };
const audiences = audiencesOf(management, project);
const isStaff = { attribute: "staff", operator: "equals", value: true };
await audiences.create({ key: "beta", match: [[isBeta], [isStaff]] });
await audiences.upload("beta", "user-1\nuser-2\n");
await audiences.create({ key: "companies" });
await audiences.upload("companies", "42\nacme\n", { query: "?attribute=company" });

const explain = async (flag: { id: string }, user: object, state?: object) =>
  management.call(`${stateOf(flag)}/explain`, {
    ...{ method: "POST", key: project.serverKey },
    body: { user, ...(state && { state }) },
  });

const rules = (...conditions: object[]) => ({ enabled: true, targeting_rules: [{ conditions }] });

describe("the explanation of a flag with an audience", () => {
  it("says which alternative the user matches, and when the audience last changed", async () => {
    const flag = await createFlag(rules({ audience: "beta" }));
    const { body } = await explain(flag, { id: "user-3", staff: true });
    expect(body).toMatchObject({ value: true, reason: "targeting_match" });
    expect(body.trace.rules[0].conditions).toEqual([
      {
        ...{ audience: "beta", held: true, listed: false, changed_at: expect.any(String) },
        alternatives: [
          { matched: false, conditions: [expect.objectContaining({ attribute: "plan" })] },
          { matched: true, conditions: [expect.objectContaining({ attribute: "staff" })] },
        ],
      },
    ]);
  });

  it.each<[object, boolean]>([
    [{ id: "user-1" }, true],
    [{ id: "user-10" }, false],
    [{ id: "someone", company: "acme" }, true],
    [{ id: "someone", company: 42 }, true],
    [{ id: "someone", company: ["other", "acme"] }, true],
    [{ id: "acme", company: "ACME" }, false],
    [{ id: "someone", name: "user-1" }, false],
    [{}, false],
  ])("looks up %j in the lists", async (user, value) => {
    const flag = await createFlag({
      enabled: true,
      targeting_rules: [
        { conditions: [{ audience: "beta" }] },
        { conditions: [{ audience: "companies" }] },
      ],
    });
    expect((await explain(flag, user)).body.value).toBe(value);
  });

  it("uses the audiences of settings that are not stored", async () => {
    const flag = await createFlag();
    const draft = rules({ audience: "beta" });
    expect((await explain(flag, { id: "user-1" }, draft)).body.value).toBe(true);
    expect(problemOf(await explain(flag, {}, rules({ audience: "nothing" })))).toBe(
      "400 VALIDATION_001: /state/targeting_rules/0/conditions/0/audience: the project has no audience nothing",
    );
  });
});

describe("the explanation of a flag with requirements", () => {
  it("follows the chain of unmet requirements", async () => {
    const [first, middle, last] = await createChain(3);
    if (!first || !middle || !last) throw new Error("the chain is too short");
    for (const flag of [first, middle]) await patch(pathOf(flag), { enabled: true });
    const { body } = await explain(first, { id: "user-1" });
    expect(body).toMatchObject({ value: false, reason: "prerequisite_failed" });
    const unmet = { is: "on", held: false, value: false, variation: "off" };
    expect(body.trace.requires).toEqual([
      {
        ...{ flag: middle.key, ...unmet, reason: "prerequisite_failed" },
        because: [{ flag: last.key, ...unmet, reason: "disabled" }],
      },
    ]);
    await patch(pathOf(last), { enabled: true });
    expect((await explain(first, { id: "user-1" })).body).toMatchObject({
      ...{ value: true, reason: "static" },
      trace: { requires: [{ flag: middle.key, held: true, reason: "static" }] },
    });
  });

  it("evaluates a required flag with its own audiences and variations", async () => {
    const color = await createFlag({
      ...{ value_type: "string", enabled: true, serve: { variation: "red" } },
      off_variation: "blue",
      variations: [
        { key: "blue", value: "#00f" },
        { key: "red", value: "#f00" },
      ],
      targeting_rules: [{ conditions: [{ audience: "beta" }] }],
    });
    const flag = await createFlag({
      ...{ enabled: true, requires: [{ flag: color.key, is: ["red"] }] },
    });
    expect((await explain(flag, { id: "user-1" })).body.value).toBe(true);
    const { body } = await explain(flag, { id: "user-3" });
    expect(body.trace.requires).toMatchObject([{ held: false, variation: "blue" }]);
  });

  it("treats the flags of a circle in the database as not found", async () => {
    const [first, middle, last] = await createChain(3);
    if (!first || !middle || !last) throw new Error("the chain is too short");
    for (const flag of [first, middle, last]) await patch(pathOf(flag), { enabled: true });
    await asOwner`
      update management.flag_states
      set content = content || ${asOwner.json({ requires: [{ flag: middle.key, is: "on" }] })}
      where flag_id = ${last.id} and environment_id = ${project.environmentId}`;
    const off = { status: 200, body: { value: false, reason: "default" } };
    expect(await explain(first, {})).toMatchObject(off);
    expect(await explain(last, {})).toMatchObject(off);
  });

  it("rejects settings that would make a circle", async () => {
    const [first, last] = await createChain(2);
    if (!first || !last) throw new Error("the chain is too short");
    const draft = { requires: [{ flag: first.key, is: "on" }] };
    expect(problemOf(await explain(last, {}, draft))).toBe(
      `400 VALIDATION_001: /state/requires/0/flag: ${last.key} → ${first.key} → ${last.key} is a circle of requirements`,
    );
  });
});

describe("the history of a flag with an audience", () => {
  it("says that the audience has changed since an entry, or no longer exists", async () => {
    await audiences.create({ key: "trial" });
    const flag = await createFlag(rules({ audience: "trial" }));
    const history = async () => (await audiences.call(`${stateOf(flag)}/history`)).body.history;
    expect((await history())[0]).not.toHaveProperty("changed_audiences");
    const trial = audiences.path("trial");
    const changed = await audiences.call(trial, { method: "PATCH", body: { match: [[isBeta]] } });
    expect((await history())[0]).toMatchObject({
      changed_audiences: [{ key: "trial", changed_at: changed.body.updated_at }],
    });
    await patch(pathOf(flag), { targeting_rules: [] });
    await audiences.call(trial, { method: "DELETE" });
    expect((await history())[1]).toMatchObject({
      changed_audiences: [{ key: "trial", changed_at: null }],
    });
  });
});
