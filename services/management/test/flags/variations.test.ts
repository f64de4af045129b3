import { connectAsSuperuser, eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { readFullState } from "../../src/publishing/full-state.ts";
import { expectWholeHistory, flagsOf } from "../flag-fixture.ts";
import { openManagement, seedProject } from "../management-fixture.ts";

/** Tests changes of a flag's variations, which its environments share. */

const management = await openManagement();
const admin = connectAsSuperuser(management.adminUrl, "management");
afterAll(async () => {
  await admin.end();
  await management.close();
});
const project = await seedProject(management);
const key = project.serverKey;
const flags = flagsOf(management, project);

const blue = { key: "blue", value: "#00f" };
const red = { key: "red", value: "#f00" };
const plain = { key: "plain", value: "" };
const createColor = (body: Record<string, unknown> = {}) =>
  flags.createFlag({ value_type: "string", variations: [blue, red, plain], ...body });

const environments = [project.environmentId, project.otherEnvironmentId];
const stateOf = (flagId: string, environmentId = project.environmentId) =>
  `/api/v1/flags/${flagId}/environments/${environmentId}`;
const readState = (flagId: string, environmentId: string) =>
  management.call(stateOf(flagId, environmentId), { key });

const setVariations = (flagId: string, variations: unknown, more: object = {}) =>
  flags.patch(`/api/v1/flags/${flagId}`, { variations, ...more });

describe("changing variations", () => {
  it("replaces the list, with other values, names and order", async () => {
    const flag = await createColor();
    const variations = [plain, { key: "blue", value: "navy", name: "Navy" }, red];
    const { status, body } = await setVariations(flag.id, variations);
    expect(status).toBe(200);
    expect(body).toMatchObject({ variations, version: 2, serve: { variation: "blue" } });
    expect((await management.call(`/api/v1/flags/${flag.id}`, { key })).body).toEqual(body);
  });

  it("publishes the entry of every environment with the version of the flag", async () => {
    const flag = await createColor();
    const { body } = await setVariations(flag.id, [{ ...blue, value: "navy" }, red, plain]);
    for (const environmentId of environments) {
      const entries = await flags.flagEntriesOf(flag.id, environmentId);
      expect(entries).toHaveLength(2);
      expect(entries[1]).toMatchObject({
        ...{ version: 2, committed_at: body.updated_at },
        variations: [{ key: "blue", json: '"navy"' }, { key: "red" }, { key: "plain" }],
      });
    }
  });

  it("leaves the states with their versions and entity tags", async () => {
    const flag = await createColor();
    const before = await Promise.all(environments.map((each) => readState(flag.id, each)));
    await setVariations(flag.id, [{ ...blue, value: "navy" }, red, plain]);
    const after = await Promise.all(environments.map((each) => readState(flag.id, each)));
    expect(after.map(({ body }) => body)).toEqual(before.map(({ body }) => body));
    expect(after.map(({ headers }) => headers.get("etag"))).toEqual(['"1"', '"1"']);
    expect(await flags.historyOf(flag.id)).toHaveLength(1);
    await expectWholeHistory(management.sql);
  });

  it("is in the entries of a rebuilt snapshot, which are the same as the published ones", async () => {
    const flag = await createColor({ serve: { variation: "red" } });
    await setVariations(flag.id, [{ ...blue, value: "navy", name: "Navy" }, red, plain]);
    await flags.patch(`/api/v1/flags/${flag.id}`, { enabled: true });
    const rebuilt: unknown[] = [];
    for await (const page of readFullState(management.sql))
      for (const { address, value } of page)
        if (address.kind === "flag" && address.flagId === flag.id) rebuilt.push(value);
    const published = await Promise.all(
      environments.map(async (each) => (await flags.flagEntriesOf(flag.id, each)).at(-1)),
    );
    expect(published.map(({ version }) => version)).toEqual([3, 2]);
    expect(rebuilt).toEqual(expect.arrayContaining(published));
    expect(rebuilt).toHaveLength(2);
  });

  it("is followed by entries with later versions", async () => {
    const flag = await createColor();
    await setVariations(flag.id, [{ ...blue, value: "navy" }, red, plain]);
    await flags.patch(stateOf(flag.id, project.otherEnvironmentId), { enabled: true });
    const entries = await flags.flagEntriesOf(flag.id, project.otherEnvironmentId);
    expect(entries.map(({ version }) => version)).toEqual([1, 2, 3]);
    expect(entries[2]).toMatchObject({ variations: [{ json: '"navy"' }, {}, {}] });
  });

  it("is a change of settings in events and the audit log", async () => {
    const flag = await createColor();
    const variations = [blue, red, { ...plain, name: "No color" }];
    await setVariations(flag.id, variations, { name: "Colors" });
    const [, event, ...more] = await flags.eventsOf(flag.id);
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      event: "flag.updated",
      changes: {
        name: { from: "A flag", to: "Colors" },
        variations: { from: [blue, red, plain], to: variations },
      },
    });
    const path = `/api/v1/projects/${project.projectId}/changes?flag_id=${flag.id}`;
    const { body } = await management.call(path, { key });
    expect(body.changes[0]).toMatchObject({
      action: "settings",
      before: { name: "A flag", variations: [blue, red, plain] },
      after: { name: "Colors", variations },
    });
  });

  it("to the same list changes nothing", async () => {
    const flag = await createColor();
    expect((await setVariations(flag.id, [blue, red, plain])).body).toEqual(flag);
    expect(await flags.eventsOf(flag.id)).toHaveLength(1);
  });

  it("does not change the variation of other users when one is appended", async () => {
    const flag = await createColor();
    const { body } = await setVariations(flag.id, [blue, red, plain, { key: "new", value: "x" }]);
    expect(body.off_variation).toBe("plain");
  });

  it.each([
    ["another type", [{ key: "blue", value: 5 }], "/variations/0/value must be a text"],
    ["no variation", [], "/variations"],
    ["a repeated key", [blue, blue], "/variations/1/key must not repeat"],
  ])("rejects %s", async (_, variations, message) => {
    const flag = await createColor();
    const answer = await setVariations(flag.id, variations);
    expect([answer.status, answer.body.error.code]).toEqual([400, "VALIDATION_001"]);
    expect(answer.body.error.message).toContain(message);
  });
});

describe("a variation that a state uses", () => {
  const half = [
    { variation: "blue", weight: 50 },
    { variation: "red", weight: 50 },
  ];
  const everywhere = { serve: { variation: "plain" }, off_variation: "plain" };

  it.each<[string, object]>([
    ["is served", { serve: { variation: "red" } }],
    ["is off", { off_variation: "red" }],
    ["is in a split", { serve: { split: half } }],
    ["is in a rule", { targeting_rules: [{ conditions: [], serve: { variation: "red" } }] }],
  ])("cannot be removed if it %s; the conflict names the environment", async (_, state) => {
    const flag = await createColor(everywhere);
    await flags.patch(stateOf(flag.id, project.otherEnvironmentId), { ...everywhere, ...state });
    const answer = await setVariations(flag.id, [blue, plain]);
    expect([answer.status, answer.body.error.code]).toEqual([409, "CONFLICT_001"]);
    expect(answer.body.error.message).toContain("must keep red, which the flag uses in staging.");
    expect(await flags.eventsOf(flag.id)).toHaveLength(2);
  });

  it("is named with all of its environments", async () => {
    const flag = await createColor({ serve: { variation: "red" } });
    await flags.patch(stateOf(flag.id, project.otherEnvironmentId), {
      off_variation: "red",
    });
    const answer = await setVariations(flag.id, [blue, plain]);
    expect(answer.body.error.message).toMatch(/in (production, staging|staging, production)\./);
  });

  it("can be removed by the request that replaces its only use", async () => {
    const flag = await createColor({ ...everywhere, serve: { variation: "red" } });
    const serve = { variation: "blue" };
    const { status, body } = await setVariations(flag.id, [blue, plain], { serve });
    expect(status).toBe(200);
    expect(body).toMatchObject({ serve, version: 2 });
    const names = (await flags.eventsOf(flag.id)).map(({ event }) => event);
    expect(names).toEqual(["flag.created", "flag.updated", "flag_state.updated"]);
    await expectWholeHistory(management.sql);
  });

  it("can be added and served by one request", async () => {
    const flag = await createColor();
    const green = { key: "green", value: "#0f0" };
    const serve = { variation: "green" };
    const { body } = await setVariations(flag.id, [blue, red, plain, green], { serve });
    expect(body).toMatchObject({ serve });
  });
});

describe("an environment_only key", () => {
  const withKey = (flagId: string, variations: unknown) =>
    management.call(`/api/v1/flags/${flagId}`, {
      ...{ method: "PATCH", key: project.environmentOnlyKey },
      body: { variations, enabled: true },
    });

  it("cannot change variations", async () => {
    const flag = await createColor();
    const answer = await withKey(flag.id, [{ ...blue, value: "navy" }, red, plain]);
    expect([answer.status, answer.body.error.code]).toEqual([403, "AUTH_002"]);
    expect(answer.body.error.message).toContain("/variations");
  });

  it("can repeat them beside a change of its state", async () => {
    const flag = await createColor();
    expect((await withKey(flag.id, [blue, red, plain])).body).toMatchObject({ enabled: true });
  });
});

describe("given a new environment that is being added", () => {
  it("does not lock the flag before the project, because both would wait for each other", async () => {
    const flag = await createColor();
    const changed = await admin.begin(async (tx) => {
      await tx`select from projects where id = ${project.projectId} for update`;
      const change = setVariations(flag.id, [{ ...blue, value: "navy" }, red, plain]);
      await eventually(async () => {
        const waiting = await admin`
          select from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`;
        return waiting.length > 0;
      });
      await tx`select from flags where id = ${flag.id} for update nowait`;
      return { change };
    });
    expect((await changed.change).status).toBe(200);
  });
});
