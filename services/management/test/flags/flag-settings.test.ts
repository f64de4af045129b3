import { connectAsSuperuser } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { flagsOf } from "../flag-fixture.ts";
import { openManagement, seedProject } from "../management-fixture.ts";

/** Tests the settings by which people find flags: tags, owner, archive; lists that use them, and changes of several flags. */

const management = await openManagement();
const admin = connectAsSuperuser(management.adminUrl, "management");
afterAll(async () => {
  await admin.end();
  await management.close();
});

async function givenProject() {
  const project = await seedProject(management);
  const flags = flagsOf(management, project);
  const list = async (query: string) => {
    const { status, body } = await management.call(`/api/v1/flags?${query}`, {
      key: project.serverKey,
    });
    return { status, body, keys: body.flags?.map((flag: { key: string }) => flag.key) };
  };
  const bulk = (body: unknown, key = project.serverKey) =>
    management.call("/api/v1/flags/bulk", { method: "POST", key, body });
  const changesOf = async (flagId: string) => {
    const path = `/api/v1/projects/${project.projectId}/changes?flag_id=${flagId}`;
    return (await management.call(path, { key: project.serverKey })).body.changes;
  };
  return { project, ...flags, list, bulk, changesOf };
}

const given = await givenProject();

describe("tags, owner and archive of a flag", () => {
  it("are normalized, and absent by default", async () => {
    const plain = await given.createFlag();
    expect(plain).toMatchObject({ tags: [], owner: null, archived_at: null });
    const flag = await given.createFlag({ tags: ["web", "beta:2", "web"], owner: "  Checkout " });
    expect(flag).toMatchObject({ tags: ["beta:2", "web"], owner: "Checkout" });
  });

  it("are changed as settings: one event and one audit entry, and no history entry", async () => {
    const flag = await given.createFlag({ tags: ["old"], owner: "Ada" });
    const path = `/api/v1/flags/${flag.id}`;
    const settings = { tags: ["new"], owner: null, archived: true };
    const { body } = await given.patch(path, settings);
    expect(body).toMatchObject({ version: 2, tags: ["new"], owner: null });
    expect(body.archived_at).toBe(body.updated_at);
    const [, event, ...more] = await given.eventsOf(flag.id);
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      event: "flag.updated",
      changes: {
        tags: { from: ["old"], to: ["new"] },
        owner: { from: "Ada", to: null },
        archived: { from: false, to: true },
      },
    });
    expect(await given.historyOf(flag.id)).toHaveLength(1);
    const [entry] = await given.changesOf(flag.id);
    expect(entry).toMatchObject({
      action: "settings",
      before: { tags: ["old"], owner: "Ada", archived: false },
      after: settings,
    });
  });

  it("stay the same if the request repeats them, and an archived flag can be restored", async () => {
    const flag = await given.createFlag({ tags: ["a", "b"], owner: "Ada" });
    const path = `/api/v1/flags/${flag.id}`;
    expect((await given.patch(path, { tags: ["b", "a"], owner: "Ada " })).body).toEqual(flag);
    const archived = await given.patch(path, { archived: true });
    expect((await given.patch(path, { archived: true })).body).toEqual(archived.body);
    expect((await given.patch(path, { archived: false })).body.archived_at).toBeNull();
  });

  it("of an archived flag leave its state as it is, which can still be changed", async () => {
    const flag = await given.createFlag({ enabled: true });
    const path = `/api/v1/flags/${flag.id}`;
    expect((await given.patch(path, { archived: true })).body.enabled).toBe(true);
    expect((await given.patch(path, { enabled: false })).body).toMatchObject({ enabled: false });
  });

  it.each([
    [{ tags: ["Upper"] }, "/tags/0 must be 1 to 50 lower-case letters"],
    [{ tags: ["-first"] }, "/tags/0 must be"],
    [{ tags: Array.from({ length: 21 }, (_, index) => `t${index}`) }, "/tags must"],
    [{ owner: "   " }, "/owner must be one line of text"],
    [{ owner: "x".repeat(101) }, "/owner must"],
    [{ archived: "yes" }, "/archived must be boolean"],
  ])("rejects %j", async (body, message) => {
    const flag = await given.createFlag();
    const answer = await given.patch(`/api/v1/flags/${flag.id}`, body);
    expect(answer.status).toBe(400);
    expect(answer.body.error.message).toContain(message);
  });

  it("cannot be changed with an environment_only key", async () => {
    const flag = await given.createFlag();
    const key = given.project.environmentOnlyKey;
    for (const body of [{ tags: ["x"] }, { owner: "x" }, { archived: true }]) {
      const options = { method: "PATCH", key, body };
      const answer = await management.call(`/api/v1/flags/${flag.id}`, options);
      expect(answer.status).toBe(403);
    }
  });
});

describe("changing several flags", () => {
  it("changes them in one transaction, each with its event and audit entry", async () => {
    const one = await given.createFlag({ tags: ["keep", "drop"] });
    const other = await given.createFlag();
    const set = { owner: "Search", archived: true, add_tags: ["q4"], remove_tags: ["drop"] };
    const { status, body } = await given.bulk({ flag_ids: [other.id, one.id, other.id], set });
    expect(status).toBe(200);
    expect(body.flags).toMatchObject([
      { id: other.id, version: 2, tags: ["q4"], owner: "Search" },
      { id: one.id, version: 2, tags: ["keep", "q4"], owner: "Search" },
    ]);
    for (const flag of body.flags) {
      const read = await management.call(`/api/v1/flags/${flag.id}`, {
        key: given.project.serverKey,
      });
      expect(read.body).toEqual(flag);
      expect(await given.eventsOf(flag.id)).toMatchObject([{}, { event: "flag.updated" }]);
      expect(await given.changesOf(flag.id)).toMatchObject([{ action: "settings" }, {}]);
    }
  });

  it("does not touch flags that already have the settings", async () => {
    const flag = await given.createFlag({ owner: "Search" });
    const { body } = await given.bulk({ flag_ids: [flag.id], set: { owner: "Search" } });
    expect(body.flags).toEqual([flag]);
    expect(await given.eventsOf(flag.id)).toHaveLength(1);
  });

  it("changes nothing if an id is unknown, and names it", async () => {
    const flag = await given.createFlag();
    const answer = await given.bulk({ flag_ids: [flag.id, uuidv7()], set: { archived: true } });
    expect(answer.status).toBe(404);
    expect(answer.body.error.message).toContain("/flag_ids/1");
    expect(await given.eventsOf(flag.id)).toHaveLength(1);
  });

  it("changes nothing if a flag would have too many tags", async () => {
    const full = await given.createFlag({ tags: Array.from({ length: 20 }, (_, i) => `t${i}`) });
    const flag = await given.createFlag();
    const answer = await given.bulk({ flag_ids: [flag.id, full.id], set: { add_tags: ["more"] } });
    expect(answer.status).toBe(400);
    expect(answer.body.error.message).toContain("/set/add_tags");
    expect(await given.eventsOf(flag.id)).toHaveLength(1);
  });

  it("needs fewer ids if the rules of the flags are very large together", async () => {
    const { createFlag, bulk } = await givenProject();
    const values = Array.from({ length: 47 }, () => "x".repeat(10_000));
    const rules = [{ conditions: [{ attribute: "plan", operator: "in", value: values }] }];
    const ids = [];
    for (let count = 0; count < 36; count++)
      ids.push((await createFlag({ targeting_rules: rules })).id);
    const tooMany = await bulk({ flag_ids: ids, set: { archived: true } });
    expect(tooMany.status).toBe(400);
    expect((await bulk({ flag_ids: ids.slice(0, 18), set: { archived: true } })).status).toBe(200);
  });

  it("is forbidden for an environment_only key, and for the flags of another project", async () => {
    const flag = await given.createFlag();
    const body = { flag_ids: [flag.id], set: { archived: true } };
    expect((await given.bulk(body, given.project.environmentOnlyKey)).status).toBe(403);
    const other = await seedProject(management);
    expect((await given.bulk(body, other.serverKey)).status).toBe(404);
  });
});

describe("the list of flags", () => {
  it("contains archived flags unless they are left out", async () => {
    const { createFlag, patch, list } = await givenProject();
    await createFlag({ key: "live" });
    const old = await createFlag({ key: "old" });
    await patch(`/api/v1/flags/${old.id}`, { archived: true });
    expect((await list("")).keys).toEqual(["live", "old"]);
    expect((await list("archived=false")).keys).toEqual(["live"]);
    expect((await list("archived=true")).keys).toEqual(["old"]);
  });

  it("is filtered by all given settings", async () => {
    const { createFlag, list } = await givenProject();
    await createFlag({ key: "a", tags: ["web", "beta"], owner: "Ada" });
    await createFlag({ key: "b", tags: ["web"], owner: "Bob", type: "experiment" });
    await createFlag({ key: "c", tags: ["beta"], owner: "Ada" });
    expect((await list("tag=web")).keys).toEqual(["a", "b"]);
    expect((await list("tag=web&tag=beta")).keys).toEqual(["a"]);
    expect((await list("owner=Ada")).keys).toEqual(["a", "c"]);
    expect((await list("type=experiment&owner=Bob")).keys).toEqual(["b"]);
    expect((await list("owner=Ada&key=b")).keys).toEqual([]);
    expect((await list("tag=Upper")).status).toBe(400);
    expect((await list("owner=Ada&owner=Bob")).status).toBe(400);
    expect((await list("owner=%00")).keys).toEqual([]);
  });

  it.each([
    ["key", ["a", "b", "c", "d"]],
    ["-key", ["d", "c", "b", "a"]],
    ["name", ["c", "b", "d", "a"]],
    ["-name", ["a", "b", "d", "c"]],
    ["created_at", ["d", "c", "b", "a"]],
    ["-created_at", ["a", "b", "c", "d"]],
    ["updated_at", ["d", "b", "a", "c"]],
    ["last_evaluated_at", ["c", "d", "b", "a"]],
    ["-last_evaluated_at", ["a", "b", "c", "d"]],
  ])("is sorted by %s, whole and in pages", async (sort, expected) => {
    const { list } = await sortedProject();
    expect((await list(`sort=${sort}`)).keys).toEqual(expected);
    const paged: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const { body, keys } = await list(`sort=${sort}&limit=1${cursor && `&cursor=${cursor}`}`);
      paged.push(...keys);
      cursor = body.next_cursor;
    }
    expect(paged).toEqual(expected);
  });

  it("accepts a cursor only with the query that returned it", async () => {
    const { list } = await sortedProject();
    const { body } = await list("sort=name&archived=false&limit=2");
    const next = `cursor=${body.next_cursor}`;
    expect((await list(`archived=false&${next}&limit=1&sort=name`)).keys).toEqual(["d"]);
    const hash = Buffer.from(body.next_cursor, "base64url").toString().split(" ")[0];
    const forged = Buffer.from(`${hash} key \0`).toString("base64url");
    expect((await list(`sort=name&archived=false&limit=2&cursor=${forged}`)).status).toBe(400);
    for (const query of ["sort=-name&archived=false", "sort=name", "archived=false", ""])
      expect((await list(`${query}&limit=2&${next}`)).status).toBe(400);
  });
});

let sorted: ReturnType<typeof createSorted> | undefined;
const sortedProject = () => {
  sorted ??= createSorted();
  return sorted;
};

/** Creates flags whose orders by each column differ. Two have the same name, and two were never evaluated. */
async function createSorted() {
  const project = await givenProject();
  const names = { d: "beta", c: "Alpha", b: "beta", a: "gamma" };
  for (const [key, name] of Object.entries(names)) await project.createFlag({ key, name });
  await admin`
    update flags set created_at = now() - interval '1 day' * position(key in 'abcd')
    where project_id = ${project.project.projectId}`;
  const { body } = await project.list("");
  const idOf = (key: string) => body.flags.find((flag: { key: string }) => flag.key === key).id;
  for (const key of ["b", "a", "c"])
    await project.patch(`/api/v1/flags/${idOf(key)}`, { description: "changed" });
  for (const [key, day] of [
    ["a", 2],
    ["b", 1],
  ] as const)
    await admin`
      insert into flags_last_seen (flag_id, environment_id, evaluated_at)
      values (${idOf(key)}, ${project.project.environmentId}, ${new Date(2027, 0, day)})`;
  return project;
}
