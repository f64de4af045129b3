import { get, type IncomingMessage } from "node:http";
import { gunzipSync } from "node:zlib";
import { connectAsSuperuser, eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { openManagement, seedProject } from "../management-fixture.ts";

/** Tests the list of all flags, which is streamed while it is read from the database. */

const management = await openManagement();
const admin = connectAsSuperuser(management.adminUrl, "management");
afterAll(async () => {
  await admin.end();
  await management.close();
});

/** Creates a project with flags of the given keys and rules of the given size. */
async function projectWith(keys: readonly string[], { rulesBytes = 0 } = {}) {
  const project = await seedProject(management);
  const values = Array.from({ length: rulesBytes / valueBytes }, () => "x".repeat(valueBytes));
  const rules = [{ conditions: [{ attribute: "plan", operator: "in", value: values }] }];
  const content = { enabled: true, rollout_percentage: 100, targeting_rules: rules };
  const insert = async (...added: readonly string[]) => {
    await admin`
      with added as (
        insert into flags
        select gen_random_uuid(), ${project.projectId}, key, 'A flag', '', 'release', 1, now(), now(), now()
        from jsonb_array_elements_text(${admin.json(added)}) as key
        returning id
      )
      insert into flag_states
      select id, ${project.environmentId}, ${admin.json(content)}, 1, now() from added`;
  };
  await insert(...keys);
  return { ...project, insert };
}

/** Maximum length of a text in a condition. */
const valueBytes = 10_000;

type Project = Awaited<ReturnType<typeof projectWith>>;

const numbered = (count: number) =>
  Array.from({ length: count }, (_, index) => `flag-${String(index).padStart(5, "0")}`);

const keysIn = (body: { flags: { key: string }[] }) => body.flags.map(({ key }) => key);

/** Requests the list and receives only the headers. `textOf` receives the body. */
function openList({ serverKey }: Project, more: object = {}): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${serverKey}`, ...more };
  return new Promise((resolve, reject) => {
    get(`${management.url}/api/v1/flags`, { headers, agent: false }, resolve).once("error", reject);
  });
}

async function textOf(answered: IncomingMessage): Promise<string> {
  answered.setEncoding("utf8");
  let text = "";
  for await (const part of answered) text += part;
  return text;
}

/** A list that exceeds the socket buffers between client and service. */
const longList = { keys: numbered(300), rulesBytes: 120_000 };

describe("the list of all flags", () => {
  it("contains each flag of several pages once, in the order of the keys", async () => {
    const project = await projectWith(numbered(1_201));
    const { status, headers, body } = await management.call("/api/v1/flags", {
      key: project.serverKey,
    });
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(keysIn(body)).toEqual(numbered(1_201));
    expect(Object.keys(body)).toEqual(["flags"]);
    const list = { key: project.serverKey, method: "HEAD" };
    expect(await management.call("/api/v1/flags", list)).toMatchObject({
      status: 200,
      body: undefined,
    });
    const page = await management.call("/api/v1/flags?limit=1000", { key: project.serverKey });
    expect(body.flags.slice(0, 1_000)).toEqual(page.body.flags);
  });

  it("has a Content-Length if it fits into one page", async () => {
    const project = await projectWith(["one", "two"]);
    const answered = await openList(project);
    const text = await textOf(answered);
    expect(answered.headers["content-length"]).toBe(String(text.length));
  });

  it.each([
    ["in one page", 20],
    ["in several pages", 1_201],
  ])("is compressed for clients that accept it, %s", async (_, count) => {
    const project = await projectWith(numbered(count));
    const answered = await openList(project, { "accept-encoding": "gzip" });
    expect(answered.headers).toMatchObject({
      "content-encoding": "gzip",
      vary: "Authorization, Cookie, Halyard-Environment, Accept-Encoding",
    });
    const chunks: Buffer[] = [];
    for await (const chunk of answered) chunks.push(chunk);
    const compressed = Buffer.concat(chunks);
    const plain = gunzipSync(compressed).toString();
    expect(compressed.length).toBeLessThan(plain.length / 4);
    expect(keysIn(JSON.parse(plain))).toEqual(numbered(count));
    expect(await textOf(await openList(project))).toBe(plain);
  });

  it("is not compressed if it is small", async () => {
    const project = await projectWith(["one"]);
    const answered = await openList(project, { "accept-encoding": "gzip" });
    expect(answered.headers).not.toHaveProperty("content-encoding");
    answered.resume();
  });

  it("aborts a compressed response if a page cannot be read", async () => {
    const project = await projectWith(longList.keys, longList);
    const answered = await openList(project, { "accept-encoding": "gzip" });
    await admin`revoke select on flags from management_service`;
    await expect(textOf(answered)).rejects.toMatchObject({ code: "ECONNRESET" });
    await admin`grant select on flags to management_service`;
  });

  it("is read only as fast as the client receives it, and holds no connection between pages", async () => {
    const project = await projectWith(longList.keys, longList);
    const answered = await openList(project);
    await eventually(async () => {
      const [busy] = await admin`
        select count(*)::integer as connections from pg_stat_activity
        where usename = 'management_service' and state <> 'idle'`;
      return busy?.connections === 0;
    });
    await project.insert("the-last");
    const keys = keysIn(JSON.parse(await textOf(answered)));
    expect(keys).toEqual([...longList.keys, "the-last"]);
  });

  it("ends normally if all flags of the next page are deleted meanwhile", async () => {
    const project = await projectWith(longList.keys, longList);
    const answered = await openList(project);
    await admin`delete from flags where project_id = ${project.projectId}`;
    const keys = keysIn(JSON.parse(await textOf(answered)));
    expect(keys).toEqual(longList.keys.slice(0, keys.length));
    expect(keys.length).toBeLessThan(longList.keys.length);
  });

  it("aborts the response if a page cannot be read, so that a partial list is not valid", async () => {
    const project = await projectWith(longList.keys, longList);
    const answered = await openList(project);
    expect(answered.statusCode).toBe(200);
    await admin`revoke select on flags from management_service`;
    await expect(textOf(answered)).rejects.toMatchObject({ code: "ECONNRESET" });
    await admin`grant select on flags to management_service`;
  });
});

describe("a page of the list", () => {
  it("ends early if its rules are very long, and the next page continues there", async () => {
    const project = await projectWith(numbered(50), { rulesBytes: 480_000 });
    const first = await management.call("/api/v1/flags?limit=50", { key: project.serverKey });
    expect(first.body.flags.length).toBeLessThan(50);
    const second = await management.call(
      `/api/v1/flags?limit=50&cursor=${first.body.next_cursor}`,
      { key: project.serverKey },
    );
    expect(second.body.next_cursor).toBeNull();
    expect([...keysIn(first.body), ...keysIn(second.body)]).toEqual(numbered(50));
  });
});

describe("the list with include=environments", () => {
  const listOf = async (query: string, key: string) => {
    const { status, body } = await management.call(`/api/v1/flags?${query}`, { key });
    expect(status).toBe(200);
    return body.flags;
  };

  it("has the state of each flag in every environment, without the rules", async () => {
    const project = await seedProject(management);
    const key = project.serverKey;
    const body = { key: "a-flag", name: "A flag", enabled: true, rollout_percentage: 7 };
    const created = await management.call("/api/v1/flags", { method: "POST", key, body });
    const other = `/api/v1/flags/${created.body.id}/environments/${project.otherEnvironmentId}`;
    const rules = [{ conditions: [] }, { conditions: [], value: false }];
    const changed = await management.call(other, {
      method: "PATCH",
      key,
      body: { targeting_rules: rules },
    });
    const own = {
      environment_id: project.environmentId,
      enabled: true,
      rollout_percentage: 7,
      rule_count: 0,
      version: 1,
      updated_at: created.body.updated_at,
    };
    const inOther = {
      environment_id: project.otherEnvironmentId,
      enabled: false,
      rollout_percentage: 100,
      rule_count: 2,
      version: 2,
      updated_at: changed.body.updated_at,
    };
    const [plain] = await listOf("", key);
    expect(plain).not.toHaveProperty("environments");
    for (const query of ["include=environments", "include=environments&limit=1&key=a-flag"]) {
      const [{ environments, ...flag }] = await listOf(query, key);
      expect(flag).toEqual(plain);
      expect(environments).toHaveLength(2);
      expect(environments).toEqual(expect.arrayContaining([own, inOther]));
    }
    const [seenByBound] = await listOf("include=environments", project.environmentOnlyKey);
    expect(seenByBound.environments).toEqual([own]);
  });

  it("contains the states of flags on every page", async () => {
    const project = await projectWith(numbered(501));
    const flags = await listOf("include=environments", project.serverKey);
    expect(flags).toHaveLength(501);
    for (const { enabled, environments } of flags)
      expect(environments).toMatchObject([{ environment_id: project.environmentId, enabled }]);
  });

  it("rejects anything else to include", async () => {
    const { serverKey: key } = await seedProject(management);
    const answer = await management.call("/api/v1/flags?include=history", { key });
    expect(answer.body.error.code).toBe("VALIDATION_001");
  });
});
