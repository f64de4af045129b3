import { eventually } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { continueFills, flagsAtOnce } from "../../src/flags/environment-fills.ts";
import { expectWholeHistory } from "../flag-fixture.ts";
import { openManagement, operatorToken } from "../management-fixture.ts";
import { entriesOf, seedFlags, tenancyOf } from "../tenancy-fixture.ts";

/** Batches per environment: one in the transaction that creates the environment, and two more. */
const batches = 3;
const flagCount = batches * flagsAtOnce - 50;

const management = await openManagement({ fillsEnvironments: false });
afterAll(() => management.close());

const given = tenancyOf(management);

const clock = { now: () => new Date(), newId: uuidv7 };
const fillBatch = () =>
  management.writer(async (write) => ({ batch: await continueFills({ ...write, ...clock }) }));

async function fillEverything(): Promise<void> {
  const isFilled = async () => {
    const result = await fillBatch();
    return !("batch" in result) || result.batch === undefined;
  };
  while (!(await isFilled()));
}

/** Creates a project with flags in `production` and the new environment `preview`, which has the first batch. */
async function newEnvironment() {
  const tenant = await tenancyOf(management).scope(["production"]);
  const { project, first, userId, serverKey: key } = tenant;
  const scope = { projectId: project.id, environmentId: first.id, userId };
  const flagIds = await seedFlags(management, scope, flagCount);
  const created = await management.call(`/api/v1/projects/${project.id}/environments`, {
    method: "POST",
    key,
    body: { name: "preview" },
  });
  expect(created.status).toBe(201);
  const environment: { id: string; created_at: string; project_id: string } = created.body;

  const last = flagIds.at(-1) ?? "";
  const flag = `/api/v1/flags/${last}`;
  const state = `${flag}/environments/${environment.id}`;
  const call = (path: string, method = "GET", body?: unknown, headers?: Record<string, string>) =>
    management.call(path, {
      method,
      key,
      ...(body === undefined ? {} : { body }),
      ...(headers === undefined ? {} : { headers }),
    });

  return {
    ...tenant,
    environment,
    flagIds,
    /** A flag in the last batch, its path, and the path of its state in `preview`. */
    last,
    flag,
    state,
    call,
    statesInPreview: async () => {
      const [row] = await management.sql<[{ states: number; history: number; entries: number }]>`
        select
          (select count(*)::integer from flag_states
            where environment_id = ${environment.id}) as states,
          (select count(*)::integer from history
            where environment_id = ${environment.id}) as history,
          (select count(*)::integer from outbox
            where subject like ${`%.flag.${environment.id}.%`}) as entries`;
      return row;
    },
    entriesOfLast: () =>
      entriesOf(management, `${tenant.organizationId}.flag.${environment.id}.${last}`),
  };
}

const initialState = { enabled: false, rollout_percentage: 100, targeting_rules: [], version: 1 };

const all = { states: flagCount, history: flagCount, entries: flagCount };

describe("given a new environment of a project with many flags", () => {
  afterEach(fillEverything);

  it("has one batch of states at its creation, and gets the others batch by batch", async () => {
    const { statesInPreview } = await newEnvironment();
    const after = (count: number) => ({ states: count, history: count, entries: count });
    expect(await statesInPreview()).toEqual(after(flagsAtOnce));
    await fillBatch();
    expect(await statesInPreview()).toEqual(after(2 * flagsAtOnce));
    await fillEverything();
    expect(await statesInPreview()).toEqual(all);
  });

  it("publishes another tenant's change before the rest of its flags", async () => {
    const other = await tenancyOf(management).scope();
    const { organizationId } = await newEnvironment();
    const created = await management.call("/api/v1/flags", {
      method: "POST",
      key: other.serverKey,
      body: { key: "other", name: "f" },
    });
    expect(created.status).toBe(201);
    await fillEverything();
    const [order] = await management.sql<[{ before: number; after: number }]>`
      select count(*) filter (where row.id < change.id)::integer as before,
        count(*) filter (where row.id > change.id)::integer as after
      from outbox as row, outbox as change
      where row.subject like ${`${organizationId}.flag.%`}
        and change.subject = ${`${other.organizationId}.flag.${other.first.id}.${created.body.id}`}`;
    expect(order).toEqual({ before: flagsAtOnce, after: flagCount - flagsAtOnce });
  });

  it("returns every flag immediately with the state that is stored later", async () => {
    const { environment, last, flag, state, call, userId } = await newEnvironment();
    const shown = await call(state);
    expect(shown).toMatchObject({ status: 200 });
    expect(shown.body).toEqual({
      flag_id: last,
      environment_id: environment.id,
      ...initialState,
      updated_at: environment.created_at,
    });
    const { key } = await tenancyOf(management).key(environment, { user_id: userId });
    const list = await management.call("/api/v1/flags", { key });
    expect(list.body.flags).toHaveLength(flagCount);
    expect((await management.call(flag, { key })).body).toMatchObject({ enabled: false });

    await fillEverything();
    const stored = await call(state);
    expect(stored.body).toEqual(shown.body);
    expect(stored.headers.get("etag")).toBe(shown.headers.get("etag"));
    expect((await management.call("/api/v1/flags", { key })).body).toEqual(list.body);
  });

  it("has a history for every flag immediately, and does not repeat it", async () => {
    const { environment, state, call, userId } = await newEnvironment();
    const history = await call(`${state}/history`);
    expect(history.body.history).toEqual([
      expect.objectContaining({
        enabled: false,
        change_type: "manual",
        changed_by: userId,
        changed_at: environment.created_at,
      }),
    ]);
    await fillEverything();
    expect((await call(`${state}/history`)).body).toEqual(history.body);
  });

  it("accepts a change of a flag with the returned ETag, and keeps the change", async () => {
    const { state, call, entriesOfLast, statesInPreview } = await newEnvironment();
    const etag = (await call(state)).headers.get("etag") ?? "";
    const changed = await call(state, "PATCH", { enabled: true }, { "if-match": etag });
    expect(changed).toMatchObject({ status: 200, body: { enabled: true, version: 2 } });
    await fillEverything();
    expect((await call(state)).body).toEqual(changed.body);
    expect((await call(`${state}/history`)).body.history).toMatchObject([
      { enabled: true },
      { enabled: false },
    ]);
    expect(await entriesOfLast()).toMatchObject([
      { enabled: false, version: 1 },
      { enabled: true, version: 2 },
    ]);
    expect(await statesInPreview()).toEqual({
      states: flagCount,
      history: flagCount + 1,
      entries: flagCount + 1,
    });
  });

  it("keeps the ETag of a flag that changes in another environment", async () => {
    const { flag, state, call } = await newEnvironment();
    const before = await call(state);
    expect((await call(flag, "PATCH", { enabled: false })).body).toMatchObject({ version: 2 });
    expect((await call(state)).body).toEqual(before.body);
    await fillEverything();
    expect((await call(state)).body).toEqual(before.body);
  });

  it("rejects a rollback of a state without an earlier one", async () => {
    const { state, call } = await newEnvironment();
    const rolledBack = await call(`${state}/rollback`, "POST");
    expect(rolledBack).toMatchObject({ status: 409 });
  });

  it("does not restore a flag that is deleted meanwhile, and records its deletion", async () => {
    const { flag, state, call, project, last, entriesOfLast, statesInPreview } =
      await newEnvironment();
    expect((await call(flag, "DELETE")).status).toBe(204);
    await fillEverything();
    expect((await call(state)).status).toBe(404);
    expect((await entriesOfLast()).at(-1)).toMatchObject({ deleted: true });
    expect(await statesInPreview()).toMatchObject({ states: flagCount - 1 });
    const changes = await call(`/api/v1/projects/${project.id}/changes?flag_id=${last}`);
    expect(changes.body.changes).toMatchObject([{ action: "deleted" }]);
  });

  it("gives a concurrently created flag one state in each environment", async () => {
    const { call, statesInPreview } = await newEnvironment();
    for (const key of ["a-first", "z-last"])
      expect((await call("/api/v1/flags", "POST", { key, name: "f" })).status).toBe(201);
    await fillEverything();
    const count = flagCount + 2;
    expect(await statesInPreview()).toEqual({ states: count, history: count, entries: count });
  });

  it("continues after a batch that was rolled back", async () => {
    const { statesInPreview } = await newEnvironment();
    const crash = new Error("the process dies");
    await expect(
      management.writer(async (write) => {
        await continueFills({ ...write, ...clock });
        throw crash;
      }),
    ).rejects.toBe(crash);
    expect(await statesInPreview()).toMatchObject({ states: flagsAtOnce });
    await fillEverything();
    expect(await statesInPreview()).toEqual(all);
  });

  it("gets each state once if several processes fill it", async () => {
    const { statesInPreview } = await newEnvironment();
    await Promise.all([fillEverything(), fillEverything(), fillEverything()]);
    await fillEverything();
    expect(await statesInPreview()).toEqual(all);
  });

  it("is filled in turn with other environments", async () => {
    const [one, other] = [await newEnvironment(), await newEnvironment()];
    await fillBatch();
    await fillBatch();
    for (const { statesInPreview } of [one, other])
      expect(await statesInPreview()).toMatchObject({ states: 2 * flagsAtOnce });
  });

  it("has an unbroken history before and after all flags have a state", async () => {
    const { flag, call } = await newEnvironment();
    await expectWholeHistory(management.sql);
    expect((await call(flag, "DELETE")).status).toBe(204);
    await fillEverything();
    await expectWholeHistory(management.sql);
  });

  it("reveals no flag to another tenant", async () => {
    const { flag, state } = await newEnvironment();
    const other = await tenancyOf(management).scope();
    for (const path of [state, `${state}/history`, flag])
      expect((await management.call(path, { key: other.serverKey })).status).toBe(404);
  });
});

describe("given a new environment that lacks the states of two typed flags", () => {
  afterEach(fillEverything);
  const variations = [{ key: "blue", value: "#00f" }];

  async function lackingEnvironment() {
    const { project, first, organizationId, userId, serverKey } = await given.scope(["production"]);
    const scope = { projectId: project.id, environmentId: first.id, userId };
    await seedFlags(management, scope, flagsAtOnce);
    const ids: string[] = [];
    for (const key of ["z-first", "z-second"]) {
      const body = { key, name: "f", value_type: "string", variations };
      const created = await management.call("/api/v1/flags", {
        ...{ method: "POST", key: serverKey, body },
      });
      ids.push(created.body.id);
    }
    const environment = await given.environment(project.id);
    const { key } = await given.key(environment, { user_id: userId });
    return { organizationId, ids, key, serverKey };
  }

  const waiting = (count: number) =>
    eventually(async () => {
      const found = await management.sql`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      return found.count === count;
    });

  it("accepts a change of both and a change of the second one's values at the same time", async () => {
    const { organizationId, ids, key, serverKey } = await lackingEnvironment();
    const changes = await management.sql.begin(async (tx) => {
      // Both changes lock flags, and then the sum of the organization's bytes.
      await tx`
        select from configuration_sizes where organization_id = ${organizationId} for update`;
      const both = management.call("/api/v1/flags/bulk", {
        ...{ method: "POST", key, body: { flag_ids: ids, set: { owner: "Ada" } } },
      });
      await waiting(1);
      const second = management.call(`/api/v1/flags/${ids[1]}`, {
        ...{ method: "PATCH", key: serverKey },
        body: { variations: [{ key: "blue", value: "navy" }] },
      });
      await waiting(2);
      return { both, second };
    });
    expect(await changes.both).toMatchObject({ status: 200 });
    expect(await changes.second).toMatchObject({ status: 200, body: { version: 3 } });
  });
});

describe("given an environment whose filling process has crashed", () => {
  it("is completed by another process, and the snapshot contains every flag", async () => {
    const { environment, statesInPreview } = await newEnvironment();
    const successor = await openManagement({ over: management.backends });
    await eventually(async () => (await statesInPreview()).states === flagCount);
    await eventually(
      async () =>
        (await successor.sql`select from outbox where sent_at is null limit 1`).count === 0 &&
        (await successor.sql`select from environment_fills`).count === 0,
      { because: "the relay publishes the entries" },
    );
    const list = await successor.call(
      `/api/v1/projects/${environment.project_id}/environments/${environment.id}`,
      { key: operatorToken },
    );
    expect(list.status).toBe(200);
    expect(await statesInPreview()).toEqual(all);
    await successor.stop();
  });
});
