import { isProblem } from "@halyard/http";
import type { Transaction } from "@halyard/postgres";
import { eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { readContext } from "../../src/access/change-context.ts";
import { changeFlag } from "../../src/flags/flag-changes.ts";
import { checkRules } from "../../src/flags/targeting-rules.ts";
import { audiencesOf } from "../audiences/audience-fixture.ts";
import { expectWholeHistory } from "../flag-fixture.ts";
import { openManagement, operatorToken, seedProject } from "../management-fixture.ts";
import { tenancyOf } from "../tenancy-fixture.ts";
import { problemOf, referringFlagsOf } from "./references-fixture.ts";

/** Tests the references of states to audiences and other flags: what they may name, and what they keep in use. */

const management = await openManagement();
afterAll(() => management.close());
const project = await seedProject(management);
const flags = referringFlagsOf(management, project);
const { createFlag, createChain, patch, pathOf, stateOf, require, remove, rollBack } = flags;
const audiences = audiencesOf(management, project);
await audiences.create({ key: "beta" });

const colors = {
  value_type: "string",
  variations: [
    { key: "blue", value: "#00f" },
    { key: "red", value: "#f00" },
  ],
};
const rule = (...conditions: object[]) => ({ targeting_rules: [{ conditions }] });
const country = { attribute: "country", operator: "equals", value: "AT" } as const;

const referencesOf = (flagId: string) =>
  management.sql`
    select kind, key from flag_references where flag_id = ${flagId} order by kind, key`;

describe("the conditions of a state", () => {
  it.each([
    ["audiences", (index: number) => ({ audience: `unknown-${index}` })],
    ["other flags", (index: number) => ({ flag: `unknown-${index}`, is: "on" })],
  ])("name at most 50 %s", async (_, condition) => {
    const flag = await createFlag();
    const rulesOf = (count: number) =>
      Array.from({ length: count }, (_rule, index) => ({ conditions: [condition(index)] }));
    const tooMany = problemOf(await patch(pathOf(flag), { targeting_rules: rulesOf(51) }));
    expect(tooMany).toMatch(
      /^400 VALIDATION_001: \/targeting_rules: the conditions of a flag name at most 50 /,
    );
    const unknown = problemOf(await patch(pathOf(flag), { targeting_rules: rulesOf(50) }));
    expect(unknown).toContain("unknown-0");
  });
});

describe("a state with requirements", () => {
  it("is shown with them everywhere, and without them after an empty list", async () => {
    const payments = await createFlag();
    const flag = await createFlag();
    const requires = [{ flag: payments.key, is: "on" }];
    const changed = await patch(pathOf(flag), { requires });
    expect(changed.body).toMatchObject({ requires, version: 2 });
    const listed = await management.call("/api/v1/flags?include=environments", {
      key: project.serverKey,
    });
    const inList = listed.body.flags.find(({ id }: { id: string }) => id === flag.id);
    expect(inList.environments[0]).toMatchObject({ requires });
    const [entry] = (await flags.flagEntriesOf(flag.id)).slice(-1);
    expect(entry).toMatchObject({ requires, needs: ["requires"] });
    expect((await flags.eventsOf(flag.id)).at(-1)).toMatchObject({
      event: "flag_state.updated",
      state: { requires },
    });
    const path = `/api/v1/projects/${project.projectId}/changes?flag_id=${flag.id}`;
    const { changes } = (await management.call(path, { key: project.serverKey })).body;
    expect(changes[0]).toMatchObject({ after: { requires } });
    const reset = await patch(pathOf(flag), { requires: [] });
    expect(reset.body).toEqual({ ...flag, version: 3, updated_at: reset.body.updated_at });
    expect(await flags.historyOf(flag.id)).toMatchObject([{}, { requires }, {}]);
    expect((await flags.flagEntriesOf(flag.id)).at(-1)).not.toHaveProperty("needs");
  });

  it("may have references in the conditions of its rules", async () => {
    const payments = await createFlag(colors);
    const conditions = [country, { audience: "beta" }, { flag: payments.key, is: ["red"] }];
    const flag = await createFlag(rule(...conditions));
    expect(flag.targeting_rules).toEqual([{ conditions }]);
    expect(await referencesOf(flag.id)).toEqual([
      { kind: "audience", key: "beta" },
      { kind: "flag", key: payments.key },
    ]);
    const [entry] = await flags.flagEntriesOf(flag.id);
    expect(entry).toMatchObject({ needs: ["audiences", "requires"] });
    await patch(pathOf(flag), { targeting_rules: [] });
    expect(await referencesOf(flag.id)).toEqual([]);
  });

  it.each<[string, (keys: { payments: string; color: string }) => object, string]>([
    ["flag", () => ({ requires: [{ flag: "nothing", is: "on" }] }), "/requires/0/flag"],
    [
      "flag in a rule",
      ({ payments }) => rule(country, { flag: payments, is: "on" }, { flag: "nothing", is: "off" }),
      "/targeting_rules/0/conditions/2/flag",
    ],
    [
      "audience",
      () => rule(country, { audience: "nothing" }),
      "/targeting_rules/0/conditions/1/audience",
    ],
    [
      "variation",
      ({ color }) => ({ requires: [{ flag: color, is: ["blue", "nothing"] }] }),
      "/requires/0/is/1",
    ],
    [
      "variation of a boolean flag",
      ({ payments }) => ({ requires: [{ flag: payments, is: ["on", "nothing"] }] }),
      "/requires/0/is/1",
    ],
  ])("is rejected with an unknown %s, which the message names", async (_, bodyOf, pointer) => {
    const payments = await createFlag();
    const color = await createFlag(colors);
    const body = bodyOf({ payments: payments.key, color: color.key });
    const flag = await createFlag();
    const created = await flags.post({ key: flags.freshKey(), name: "A flag", ...body });
    for (const answer of [
      created,
      await patch(pathOf(flag), body),
      await patch(stateOf(flag), body),
    ])
      expect(problemOf(answer)).toMatch(`400 VALIDATION_001: ${pointer}: the `);
    expect(problemOf(created)).toMatch(/ has no .* nothing$/);
  });

  it("is rejected with a flag of another project", async () => {
    const other = referringFlagsOf(management, await seedProject(management));
    await other.createFlag({ key: "elsewhere" });
    const flag = await createFlag();
    expect(problemOf(await require(flag, { key: "elsewhere" }))).toMatch("no flag elsewhere");
  });

  it("is rejected if it is too large together with its rules", async () => {
    const payments = await createFlag();
    const value = Array.from({ length: 48 }, () => "x".repeat(9_990));
    const rules = rule({ attribute: "id", operator: "in", value });
    const flag = await createFlag(rules);
    const requires = Array.from({ length: 10 }, () => ({
      flag: payments.key,
      is: Array.from({ length: 50 }, () => "on"),
    }));
    expect((await patch(pathOf(flag), { requires })).status).toBe(200);
    const larger = rule({ attribute: "id", operator: "in", value: [...value, "x".repeat(9_990)] });
    expect((await patch(pathOf(flag), larger)).status).toBe(400);
    expect((await patch(pathOf(flag), { ...larger, requires: [] })).status).toBe(200);
  });

  it("counts its requirements in the configuration of the organization", async () => {
    const readBytes = async () => {
      const [row] = await management.sql<[{ bytes: number }]>`
        select bytes from configuration_sizes where organization_id = ${project.organizationId}`;
      return row.bytes;
    };
    const payments = await createFlag();
    const before = await readBytes();
    const requires = [{ flag: payments.key, is: "on" }];
    const flag = await createFlag({ requires });
    expect((await readBytes()) - before).toBe(JSON.stringify(requires).length);
    await patch(pathOf(flag), { requires: [] });
    expect(await readBytes()).toBe(before);
  });
});

describe("given requirements between flags", () => {
  it("rejects a circle with its path, also of a flag with itself", async () => {
    const [first, middle, last] = (await createChain(3)) as [Flag, Flag, Flag];
    const circle = [last, first, middle, last].map(({ key }) => key).join(" → ");
    const message = `400 VALIDATION_001: /requires/0/flag: ${circle} is a circle of requirements`;
    expect(problemOf(await require(last, first))).toBe(message);
    expect(problemOf(await require(first, first))).toMatch(
      `${first.key} → ${first.key} is a circle`,
    );
    const own = { key: flags.freshKey() };
    const created = await flags.post({
      ...{ ...own, name: "A flag" },
      ...rule({ flag: own.key, is: ["blue"] }),
    });
    expect(problemOf(created)).toMatch(
      `/targeting_rules/0/conditions/0/flag: ${own.key} → ${own.key} is a circle`,
    );
  });

  it("accepts in another environment what would be a circle here", async () => {
    const [first, last] = (await createChain(2)) as [Flag, Flag];
    const path = stateOf(last, project.otherEnvironmentId);
    const answer = await patch(path, { requires: [{ flag: first.key, is: "off" }] });
    expect(answer.status).toBe(200);
  });

  it("accepts chains of ten requirements and rejects longer ones, from either end", async () => {
    const chain = (await createChain(11)) as [Flag, ...Flag[]];
    const [first] = chain;
    const last = chain.at(-1) as Flag;
    const other = await createFlag();
    expect(problemOf(await require(other, first))).toMatch(
      `/requires/0/flag: ${other.key} → ${first.key} → `,
    );
    expect(problemOf(await require(last, other))).toMatch(
      `${last.key} → ${other.key} is a chain of 11 requirements, more than 10`,
    );
    expect((await require(other, chain[1] as Flag)).status).toBe(200);
  });

  it("switches a required flag on and off", async () => {
    const [, required] = (await createChain(2)) as [Flag, Flag];
    for (const enabled of [true, false])
      expect((await patch(pathOf(required), { enabled })).status).toBe(200);
  });
});

type Flag = { id: string; key: string };

describe("given a required flag", () => {
  it("does not delete it, and names the flags and environments that require it", async () => {
    const [first, second] = [await createFlag(), await createFlag()];
    const payments = await createFlag();
    await require(first, payments);
    await patch(
      stateOf(second, project.otherEnvironmentId),
      rule({ flag: payments.key, is: "off" }),
    );
    expect(problemOf(await remove(payments))).toBe(
      `409 CONFLICT_001: The flag is required by ${first.key} in production, ${second.key} in staging. Remove these requirements first.`,
    );
    expect((await remove(first)).status).toBe(204);
    expect((await remove(second)).status).toBe(204);
    expect((await remove(payments)).status).toBe(204);
  });

  it("names at most 20 of the states that require it, and the number of others", async () => {
    const payments = await createFlag();
    for (let index = 0; index < 22; index += 1) await require(await createFlag(), payments);
    const message = problemOf(await remove(payments));
    expect(message.match(/ in production/g)).toHaveLength(20);
    expect(message).toMatch(", and 2 other states. ");
  });

  it("deletes it after the environment that required it", async () => {
    const { project: made, first, second, serverKey } = await tenancyOf(management).scope();
    const tenant = { projectId: made.id, environmentId: first.id, serverKey };
    const own = referringFlagsOf(management, { ...project, ...tenant });
    const [flag, payments] = [await own.createFlag(), await own.createFlag()];
    await own.patch(own.stateOf(flag, second.id), { requires: [{ flag: payments.key, is: "on" }] });
    expect((await own.remove(payments)).status).toBe(409);
    const path = `/api/v1/projects/${made.id}/environments/${second.id}?confirm=${second.id}`;
    const deleted = await management.call(path, { method: "DELETE", key: operatorToken });
    expect(deleted.status).toBe(204);
    expect((await own.remove(payments)).status).toBe(204);
    await eventually(async () => (await referencesOf(flag.id)).length === 0);
  });

  it("keeps the variations that a requirement names", async () => {
    const color = await createFlag({
      ...colors,
      serve: { variation: "blue" },
      off_variation: "blue",
    });
    await patch(stateOf(color, project.otherEnvironmentId), {
      ...{ serve: { variation: "blue" }, off_variation: "blue" },
    });
    const flag = await createFlag(rule({ flag: color.key, is: ["blue", "red"] }));
    const withoutRed = { variations: [{ key: "blue", value: "navy" }] };
    expect(problemOf(await patch(pathOf(color), withoutRed))).toBe(
      `409 CONFLICT_001: /variations must keep red, which is required by ${flag.key} in production. Change these requirements first.`,
    );
    await patch(pathOf(flag), rule({ flag: color.key, is: "on" }));
    expect((await patch(pathOf(color), withoutRed)).status).toBe(200);
  });
});

describe("a rollback", () => {
  it("restores requirements", async () => {
    const payments = await createFlag();
    const flag = await createFlag({ requires: [{ flag: payments.key, is: "on" }] });
    await patch(pathOf(flag), { requires: [] });
    expect((await rollBack(flag)).status).toBe(200);
    expect(await referencesOf(flag.id)).toEqual([{ kind: "flag", key: payments.key }]);
    expect((await remove(payments)).status).toBe(409);
  });

  it("is rejected if a required flag no longer exists", async () => {
    const payments = await createFlag();
    const flag = await createFlag({ requires: [{ flag: payments.key, is: "on" }] });
    await patch(pathOf(flag), { requires: [] });
    await remove(payments);
    expect(problemOf(await rollBack(flag))).toBe(
      `409 CONFLICT_001: The earlier state cannot be restored: the project has no flag ${payments.key}.`,
    );
  });

  it("is rejected if an audience no longer exists", async () => {
    await audiences.create({ key: "gone" });
    const flag = await createFlag(rule({ audience: "gone" }));
    await patch(pathOf(flag), { targeting_rules: [] });
    await audiences.call(audiences.path("gone"), { method: "DELETE" });
    expect(problemOf(await rollBack(flag))).toBe(
      "409 CONFLICT_001: The earlier state cannot be restored: the project has no audience gone.",
    );
  });

  it("is rejected if a required variation no longer exists", async () => {
    const color = await createFlag({ ...colors, off_variation: "blue" });
    await patch(stateOf(color, project.otherEnvironmentId), { off_variation: "blue" });
    const flag = await createFlag({ requires: [{ flag: color.key, is: ["red"] }] });
    await patch(pathOf(flag), { requires: [] });
    await patch(pathOf(color), { variations: [{ key: "blue", value: "navy" }] });
    expect(problemOf(await rollBack(flag))).toMatch(`the flag ${color.key} has no variation red`);
  });

  it("is rejected if it would make a circle", async () => {
    const [first, last] = (await createChain(2)) as [Flag, Flag];
    await patch(pathOf(first), { requires: [] });
    await require(last, first);
    expect(problemOf(await rollBack(first))).toBe(
      `409 CONFLICT_001: The earlier state cannot be restored: ${first.key} → ${last.key} → ${first.key} is a circle of requirements.`,
    );
    await expectWholeHistory(management.sql);
  });
});

it("sends no statement about references for a change of a flag without them", async () => {
  const flag = await createFlag();
  const sent: string[] = [];
  const clock = { now: () => new Date(), newId: uuidv7 };
  const changed = await management.writer((write) => {
    const tx = new Proxy(write.tx, {
      apply(target, _, [strings, ...values]: Parameters<Transaction>) {
        sent.push(strings.join("?"));
        return target(strings, ...values);
      },
    });
    const author = { userId: project.userId, apiKeyId: null, via: "schedule" as const };
    const context = () => readContext(tx, { author, cause: "manual" }, clock);
    const scope = { ...project, flagId: flag.id };
    const requested = checkRules({ targeting_rules: [{ conditions: [country] }] });
    if (isProblem(requested)) throw new Error(requested.message);
    return changeFlag({ ...write, ...clock, tx, context }, { scope }, requested);
  });
  expect(changed).toMatchObject({ changed: true });
  expect(sent.filter((text) => /flag_states/.test(text))).not.toEqual([]);
  expect(sent.filter((text) => /projects where|flag_references|audiences/.test(text))).toEqual([]);
});
