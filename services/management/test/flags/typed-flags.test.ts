import { createHash, randomUUID } from "node:crypto";
import { eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { expectWholeHistory, flagsOf } from "../flag-fixture.ts";
import { openManagement, operatorToken, seedProject } from "../management-fixture.ts";
import { tenancyOf } from "../tenancy-fixture.ts";

/** Tests the values of typed flags: their types, their limits, and the text that every answer keeps. */

const planWithoutLimits = { requests_per_month: null, sse_connections: null, projects: null };
const management = await openManagement({
  plans: {
    pro: { ...planWithoutLimits, configuration_bytes: null },
    small: { ...planWithoutLimits, configuration_bytes: 200 },
  },
});
afterAll(() => management.close());
const project = await seedProject(management);
const key = project.serverKey;
const flags = flagsOf(management, project);

const color = {
  value_type: "string",
  variations: [
    { key: "blue", value: "#00f" },
    { key: "red", value: "#f00", name: "Red" },
    { key: "plain", value: "" },
  ],
};

const stateOf = (flagId: string, environmentId = project.environmentId) =>
  `/api/v1/flags/${flagId}/environments/${environmentId}`;

/** Sends a request with a body of exactly this text, and returns the text of the response. */
async function send(method: string, path: string, text: string, headers = {}) {
  const response = await fetch(management.url + path, {
    method,
    body: text,
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      ...headers,
    },
  });
  return { status: response.status, text: await response.text() };
}

async function readText(path: string): Promise<string> {
  const response = await fetch(management.url + path, {
    headers: { authorization: `Bearer ${key}` },
  });
  return response.text();
}

const createText = (valueType: string, values: string, more = "") =>
  `{"key":"${flags.freshKey()}","name":"f","value_type":"${valueType}","variations":[${values}]${more}}`;

/** Creates a flag of numbers or objects whose only variation has a value with this text. */
const createWithValue = (valueType: string, text: string) =>
  send("POST", "/api/v1/flags", createText(valueType, `{ "key": "only", "value": ${text} }`));

describe("creating a typed flag", () => {
  it.each([
    ["string", ["#00f", ""]],
    ["number", [0.1, -3]],
    ["object", [{ columns: 2, nested: { list: [1, "two", null, true] } }, {}]],
  ])("of the type %s returns its variations", async (value_type, [one, other]) => {
    const variations = [
      { key: "one", value: one },
      { key: "other", value: other, name: "Other" },
    ];
    const flag = await flags.createFlag({ value_type, variations });
    expect(flag).toMatchObject({ value_type, variations });
    expect((await management.call(`/api/v1/flags/${flag.id}`, { key })).body).toEqual(flag);
  });

  it("serves the first variation and keeps the last one for all other users", async () => {
    const flag = await flags.createFlag(color);
    expect(flag).toMatchObject({ serve: { variation: "blue" }, off_variation: "plain" });
    const other = await management.call(stateOf(flag.id, project.otherEnvironmentId), { key });
    expect(other.body).toMatchObject({ serve: { variation: "blue" }, off_variation: "plain" });
  });

  it("with one variation leaves all other users to their application", async () => {
    const variations = [{ key: "only", value: "x" }];
    const flag = await flags.createFlag({ value_type: "string", variations });
    expect(flag).toMatchObject({ serve: { variation: "only" }, off_variation: null });
  });

  it("sets what the request says in the environment of the key only", async () => {
    const flag = await flags.createFlag({
      ...color,
      serve: { variation: "red" },
      off_variation: null,
    });
    expect(flag).toMatchObject({ serve: { variation: "red" }, off_variation: null });
    const other = await management.call(stateOf(flag.id, project.otherEnvironmentId), { key });
    expect(other.body).toMatchObject({ serve: { variation: "blue" }, off_variation: "plain" });
  });

  it("records the variations in the audit log, and the state in events, history and snapshot", async () => {
    const flag = await flags.createFlag(color);
    const changes = `/api/v1/projects/${project.projectId}/changes?flag_id=${flag.id}`;
    const { body } = await management.call(changes, { key });
    expect(body.changes[0]).toMatchObject({
      action: "created",
      after: { ...color, serve: { variation: "blue" }, off_variation: "plain" },
    });
    const state = { serve: { variation: "blue" }, off_variation: "plain" };
    expect(await flags.eventsOf(flag.id)).toMatchObject([{ event: "flag.created", state }]);
    expect(await flags.historyOf(flag.id)).toMatchObject([state]);
    expect(await flags.flagEntriesOf(flag.id)).toMatchObject([
      {
        ...state,
        value_type: "string",
        variations: [
          { key: "blue", json: '"#00f"' },
          { key: "red", json: '"#f00"', name: "Red" },
          { key: "plain", json: '""' },
        ],
      },
    ]);
    await expectWholeHistory(management.sql);
  });

  it("returns the same bytes when it is repeated with its idempotency key", async () => {
    const text = createText("number", '{ "key": "a", "value": 1.0 }');
    const headers = { "idempotency-key": randomUUID() };
    const first = await send("POST", "/api/v1/flags", text, headers);
    expect(first.status).toBe(201);
    expect(first.text).toContain('"value":1.0}');
    expect(await send("POST", "/api/v1/flags", text, headers)).toEqual(first);
  });

  it.each([
    ["number", "1", "1.0"],
    ["object", '{"a":1,"b":2}', '{"b":2,"a":1}'],
    ["string", '"b"', '"\\u0062"'],
  ])("is another request than one with another text of a %s", async (type, value, other) => {
    const text = createText(type, `{ "key": "a", "value": ${value} }`);
    const headers = { "idempotency-key": randomUUID() };
    expect(await send("POST", "/api/v1/flags", text, headers)).toMatchObject({ status: 201 });
    const changed = text.replace(value, other);
    const again = await send("POST", "/api/v1/flags", changed, headers);
    expect(again.status).toBe(409);
    expect(again.text).toContain("This Idempotency-Key was used for another request");
  });
});

describe("a boolean flag", () => {
  it("has the type boolean and none of the members of typed flags", async () => {
    const flag = await flags.createFlag();
    expect(flag.value_type).toBe("boolean");
    for (const name of ["variations", "serve", "off_variation"])
      expect(flag).not.toHaveProperty(name);
    const [entry] = await flags.flagEntriesOf(flag.id);
    for (const name of ["value_type", "variations", "serve", "off_variation"])
      expect(entry).not.toHaveProperty(name);
  });

  const rule = { conditions: [], serve: { variation: "on" } };
  it.each([
    [{ variations: [{ key: "on", value: "x" }] }, "/variations must be absent"],
    [{ serve: { variation: "on" } }, "/serve must be absent"],
    [{ off_variation: "off" }, "/off_variation must be absent"],
    [{ off_variation: null }, "/off_variation must be absent"],
    [{ targeting_rules: [rule] }, "/targeting_rules/0/serve must be absent"],
  ])("rejects %j, when it is created and when it is changed", async (body, message) => {
    const created = await flags.post({ key: flags.freshKey(), name: "f", ...body });
    expect([created.status, created.body.error.code]).toEqual([400, "VALIDATION_001"]);
    expect(created.body.error.message).toContain(message);
    const flag = await flags.createFlag();
    const changed = await flags.patch(`/api/v1/flags/${flag.id}`, body);
    expect([changed.status, changed.body.error.code]).toEqual([400, "VALIDATION_001"]);
    expect(changed.body.error.message).toContain(message);
  });
});

describe("the snapshot entry of a typed flag", () => {
  it("names what an edge must know", async () => {
    const flag = await flags.createFlag({ ...color, bucket_by: "company" });
    expect((await flags.flagEntriesOf(flag.id)).at(-1)).toMatchObject({
      needs: ["buckets", "values"],
    });
  });
});

describe("the type of a flag", () => {
  it("cannot be changed", async () => {
    const flag = await flags.createFlag(color);
    const answer = await flags.patch(`/api/v1/flags/${flag.id}`, { value_type: "number" });
    expect([answer.status, answer.body.error.code]).toEqual([400, "VALIDATION_001"]);
    expect(answer.body.error.message).toContain("/value_type never changes");
    expect(answer.body.error.message).toContain("Create another flag");
    const same = await flags.patch(`/api/v1/flags/${flag.id}`, { value_type: "string" });
    expect(same.body).toEqual(flag);
  });

  it.each([
    ["string", 5, "/variations/1/value must be a text"],
    ["string", {}, "/variations/1/value must be a text"],
    ["number", "5", "/variations/1/value must be a number"],
    ["object", "{}", "/variations/1/value must be a JSON object"],
    ["object", 5, "/variations/1/value must be a JSON object"],
  ])("%s rejects the value %j", async (value_type, value, message) => {
    const good = { string: "x", number: 1, object: {} }[value_type];
    const variations = [
      { key: "good", value: good },
      { key: "bad", value },
    ];
    const answer = await flags.post({ key: flags.freshKey(), name: "f", value_type, variations });
    expect([answer.status, answer.body.error.code]).toEqual([400, "VALIDATION_001"]);
    expect(answer.body.error.message).toContain(message);
  });
});

describe("variations that are rejected", () => {
  const many = Array.from({ length: 51 }, (_, index) => ({ key: `v${index}`, value: "x" }));
  const nested = (levels: number): object => (levels === 1 ? {} : { a: nested(levels - 1) });

  it.each<[string, unknown, string]>([
    ["none", undefined, "/variations is required"],
    ["an empty list", [], "/variations"],
    ["more than 50", many, "/variations"],
    ["a key with a space", [{ key: "a b", value: "x" }], "/variations/0/key must be 1 to 64"],
    ["an empty key", [{ key: "", value: "x" }], "/variations/0/key"],
    ["a long key", [{ key: "k".repeat(65), value: "x" }], "/variations/0/key"],
    [
      "a repeated key",
      [
        { key: "a", value: "x" },
        { key: "a", value: "y" },
      ],
      "/variations/1/key must not repeat",
    ],
    ["a missing value", [{ key: "a" }], "/variations/0"],
    ["null as a value", [{ key: "a", value: null }], "/variations/0/value"],
    ["an array as a value", [{ key: "a", value: [] }], "/variations/0/value"],
    ["a boolean as a value", [{ key: "a", value: true }], "/variations/0/value"],
    ["an unknown member", [{ key: "a", value: "x", weight: 1 }], "/variations/0"],
    ["a blank name", [{ key: "a", value: "x", name: " " }], "/variations/0/name"],
    ["a NUL character", [{ key: "a", value: "\0" }], "/variations/0/value must not contain NUL"],
    ["a lone surrogate", [{ key: "a", value: "\ud800" }], "/variations/0/value must not contain"],
    [
      "a value of more than 64 KiB",
      [{ key: "a", value: "x".repeat(65_535) }],
      "/variations/0/value must have at most 65536 bytes as JSON, not 65537",
    ],
    [
      "values of more than 256 KiB together",
      Array.from({ length: 5 }, (_, index) => ({ key: `v${index}`, value: "x".repeat(60_000) })),
      "/variations must have at most 262144 bytes of values, not 300010",
    ],
  ])("%s", async (_, variations, message) => {
    const body = { key: flags.freshKey(), name: "f", value_type: "string", variations };
    const answer = await flags.post(body);
    expect([answer.status, answer.body.error.code]).toEqual([400, "VALIDATION_001"]);
    expect(answer.body.error.message).toContain(message);
  });

  it("have an object with 21 levels; 20 are accepted", async () => {
    expect((await createWithValue("object", JSON.stringify(nested(20)))).status).toBe(201);
    const rejected = await createWithValue("object", JSON.stringify(nested(21)));
    expect(rejected.status).toBe(400);
    expect(rejected.text).toContain("/variations/0/value must have at most 20 levels");
  });

  it("have a value of 64 KiB at most, which is accepted", async () => {
    const text = JSON.stringify("ü".repeat(32_767));
    expect(Buffer.byteLength(text)).toBe(65_536);
    expect((await createWithValue("string", text)).status).toBe(201);
  });

  it.each([
    ["number", "9007199254740992", "must be an integer from -(2^53 - 1) to 2^53 - 1"],
    ["number", "-9007199254740992", "must be an integer from"],
    ["number", "9007199254740993", "must be an integer from"],
    ["number", "1e22", "must be an integer from"],
    ["number", "1e400", "/variations/0/value must be"],
    ["object", '{"a":1e400}', "must fit a double"],
    ["object", '{"a":[9007199254740992]}', "must be an integer from"],
    ["object", '{"\\u0000":1}', "must not contain NUL"],
    ["object", '{"\\ud800":1}', "must not contain NUL characters or broken Unicode"],
    ["object", '{"a":{"b":1,"b":2}}', "two members of the same name"],
  ])("have the %s %s", async (valueType, text, message) => {
    const answer = await createWithValue(valueType, text);
    expect(answer.status).toBe(400);
    expect(answer.text).toContain(message);
  });
});

describe("the text of a value", () => {
  const texts: [string, string][] = [
    ["number", "0.1"],
    ["number", "1e-21"],
    ["number", "5e-324"],
    ["number", "1e-400"],
    ["number", "9007199254740991"],
    ["number", "-9007199254740991"],
    ["number", "1.0"],
    ["number", "12.10"],
    ["number", "1E+2"],
    ["object", '{"2":"b","1":"a"}'],
    ["object", '{"__proto__":{"constructor":1},"toString":0.10}'],
    ["object", '{"a":[1.0,{"b":5e-324}],"":"\\u00e4\\/"}'],
    ["string", '"\\ud83d\\ude00 \\"quoted\\""'],
    ["string", '"1.0"'],
  ];

  it.each(texts)("of a %s stays %s in every answer", async (valueType, text) => {
    const created = await createWithValue(valueType, text);
    expect(created.status).toBe(201);
    expect(created.text).toContain(`"variations":[{"key":"only","value":${text}}]`);
    const { id, key: flagKey } = JSON.parse(created.text);
    const member = `"value":${text}`;
    expect(await readText(`/api/v1/flags/${id}`)).toContain(member);
    expect(await readText(`/api/v1/flags?key=${flagKey}&include=values`)).toContain(member);
    const renamed = await send("PATCH", `/api/v1/flags/${id}`, '{"name":"Renamed"}');
    expect(renamed.text).toContain(member);
    const explained = await send("POST", `${stateOf(id)}/explain`, '{"state":{"enabled":true}}');
    expect(explained.text).toContain(member);
    const [entry] = await flags.flagEntriesOf(id);
    expect(entry.variations).toEqual([{ key: "only", json: text }]);
  });

  it("loses its white space, and the sign of zero", async () => {
    const objects = await createWithValue("object", '{ "a" : [ 1.0 ,\n -0.0 ], "b c" : -0 }');
    expect(objects.text).toContain('"value":{"a":[1.0,0.0],"b c":0}}');
    const zero = await createWithValue("number", "-0");
    expect(zero.text).toContain('"value":0}');
    const underflow = await createWithValue("number", "-1e-400");
    expect(underflow.text).toContain('"value":1e-400}');
  });

  it("does not make a different version of the same value", async () => {
    const created = await createWithValue("number", "1.0");
    const { id } = JSON.parse(created.text);
    const same = '{"variations":[{"value": 1.0, "key":"only"}]}';
    expect(JSON.parse((await send("PATCH", `/api/v1/flags/${id}`, same)).text).version).toBe(1);
    const other = '{"variations":[{"key":"only","value":1}]}';
    const changed = await send("PATCH", `/api/v1/flags/${id}`, other);
    expect(changed.text).toContain('"value":1}');
    expect(JSON.parse(changed.text).version).toBe(2);
  });
});

describe("lists of flags", () => {
  it("have the values only with `include=values`", async () => {
    const flag = await flags.createFlag(color);
    const list = async (query: string) =>
      (await management.call(`/api/v1/flags?key=${flag.key}${query}`, { key })).body.flags;
    const withoutValues = [{ key: "blue" }, { key: "red", name: "Red" }, { key: "plain" }];
    expect(await list("")).toMatchObject([{ value_type: "string", variations: withoutValues }]);
    expect((await list("&limit=1"))[0].variations).toEqual(withoutValues);
    expect((await list("&include=values"))[0].variations).toEqual(color.variations);
    const [listed] = await list("&include=environments,values");
    expect(listed.variations).toEqual(color.variations);
    expect(listed.environments).toMatchObject([
      { serve: { variation: "blue" }, off_variation: "plain" },
      { serve: { variation: "blue" }, off_variation: "plain" },
    ]);
  });

  it("of several changed flags have no values", async () => {
    const flag = await flags.createFlag(color);
    const body = { flag_ids: [flag.id], set: { owner: "Search" } };
    const answer = await management.call("/api/v1/flags/bulk", { method: "POST", key, body });
    expect(answer.body.flags[0].variations).toEqual([
      { key: "blue" },
      { key: "red", name: "Red" },
      { key: "plain" },
    ]);
  });

  it("have fewer flags in a page with large values", async () => {
    const other = await seedProject(management);
    const large = flagsOf(management, other);
    const variations = Array.from({ length: 4 }, (_, index) => ({
      key: `v${index}`,
      value: "x".repeat(60_000),
    }));
    for (let count = 0; count < 6; count += 1)
      await large.createFlag({ value_type: "string", variations });
    const path = "/api/v1/flags?include=values";
    const { body } = await management.call(path, { key: other.serverKey });
    expect(body.flags).toHaveLength(6);
    expect(body.flags[5].variations).toEqual(variations);
  });
});

describe("the size of all values", () => {
  it("is limited for a project: the largest values of its flags have 2 MiB together", async () => {
    const other = await seedProject(management);
    const large = flagsOf(management, other);
    const variations = [
      { key: "large", value: "x".repeat(65_534) },
      { key: "small", value: "x" },
    ];
    const flag = { value_type: "string", variations };
    const created = [];
    for (let count = 0; count < 32; count += 1) created.push(await large.createFlag(flag));
    const rejected = await large.post({
      ...{ key: "one-more", name: "f", value_type: "string" },
      variations: [{ key: "a", value: "" }],
    });
    expect([rejected.status, rejected.body.error.code]).toEqual([400, "VALIDATION_001"]);
    expect(rejected.body.error.message).toContain(
      "/variations: the largest values of the flags of the project would have 2097154 bytes",
    );
    expect((await large.post({ key: "on-off", name: "f" })).status).toBe(201);
    const smaller = [variations[1], { key: "large", value: "x" }];
    const path = `/api/v1/flags/${created[0].id}`;
    expect((await large.patch(path, { variations: smaller })).status).toBe(200);
    expect((await large.post({ key: "now", name: "f", ...flag })).status).toBe(400);
    expect((await large.post({ key: "now", name: "f", ...color })).status).toBe(201);
  });

  it("counts in the plan of the organization, once for each environment", async () => {
    const scope = await tenancyOf(management).scope(["production", "staging"], { plan: "small" });
    const organization = `/api/v1/organizations/${scope.organizationId}`;
    const used = async () =>
      (await management.call(organization, { key: operatorToken })).body.configuration_bytes.used;
    const write = (method: string, path: string, body?: unknown) =>
      management.call(path, { method, key: scope.serverKey, ...(body ? { body } : {}) });
    const values = (length: number) => [{ key: "a", value: "x".repeat(length) }];
    const body = { key: "small", name: "f", value_type: "string", variations: values(28) };
    const { body: flag } = await write("POST", "/api/v1/flags", body);
    const perEnvironment = 30 + JSON.stringify({ variation: "a" }).length;
    expect(await used()).toBe(2 * perEnvironment);
    const path = `/api/v1/flags/${flag.id}`;
    const rejected = await write("PATCH", path, { variations: values(90) });
    expect([rejected.status, rejected.body.error.code]).toEqual([429, "RATE_001"]);
    expect((await write("PATCH", path, { variations: values(8) })).status).toBe(200);
    expect(await used()).toBe(2 * (perEnvironment - 20));
    expect((await write("DELETE", path)).status).toBe(204);
    expect(await used()).toBe(0);
  });
});

describe("a new environment", () => {
  it("has the default state of each typed flag", async () => {
    const { project: own, serverKey } = await tenancyOf(management).scope(["production"], {
      plan: "pro",
    });
    const write = (method: string, path: string, body: unknown) =>
      management.call(path, { method, key: serverKey, body });
    const { body: flag } = await write("POST", "/api/v1/flags", {
      ...{ key: "color", name: "f", ...color },
      ...{ serve: { variation: "red" }, off_variation: null },
    });
    await write("PATCH", `/api/v1/flags/${flag.id}`, {
      variations: [...color.variations, { key: "added", value: "new" }],
    });
    const environments = `/api/v1/projects/${own.id}/environments`;
    const { body: added } = await write("POST", environments, { name: "preview" });
    const path = `/api/v1/flags/${flag.id}/environments/${added.id}`;
    await eventually(async () => (await management.call(path, { key: serverKey })).status === 200);
    const { body: state } = await management.call(path, { key: serverKey });
    expect(state).toMatchObject({
      ...{ enabled: false, serve: { variation: "blue" }, off_variation: "added" },
    });
    const first = own.environments[0].id;
    const unchanged = await management.call(`/api/v1/flags/${flag.id}/environments/${first}`, {
      key: serverKey,
    });
    expect(unchanged.body).toMatchObject({ serve: { variation: "red" }, off_variation: null });
  });
});

describe("events of a flag with large values", () => {
  it("have their size and hash; the audit log has the values", async () => {
    const value = "x".repeat(2_000);
    const flag = await flags.createFlag(color);
    const variations = [{ key: "blue", value }, ...color.variations.slice(1)];
    await flags.patch(`/api/v1/flags/${flag.id}`, { variations });
    const sha256 = createHash("sha256").update(JSON.stringify(value)).digest("hex");
    const [, updated] = await flags.eventsOf(flag.id);
    expect(updated).toMatchObject({
      event: "flag.updated",
      changes: {
        variations: {
          from: color.variations,
          to: [{ key: "blue", value: { sha256, bytes: 2_002 } }, ...color.variations.slice(1)],
        },
      },
    });
    const changes = `/api/v1/projects/${project.projectId}/changes?flag_id=${flag.id}`;
    const { body } = await management.call(changes, { key });
    expect(body.changes[0]).toMatchObject({
      action: "settings",
      before: { variations: color.variations },
      after: { variations },
    });
  });
});

describe("a flag with large rules and values", () => {
  const mebibyte = 1024 * 1024;
  const values = Array.from({ length: 48 }, () => "x".repeat(10_000));
  const targeting_rules = [{ conditions: [{ attribute: "plan", operator: "in", value: values }] }];
  const manyOf = (value: string) =>
    Array.from({ length: 50 }, (_, index) => ({
      ...{ key: `v${index}`, name: "\u{1f600}".repeat(200), value },
    }));

  /** Returns the size of the largest message about a flag. */
  async function largestMessage(flagId: string): Promise<number> {
    const [row] = await management.sql<[{ bytes: number }]>`
      select max(octet_length(payload)) as bytes from outbox
      where payload like ${`%${flagId}%`}`;
    return row.bytes;
  }

  it("has events that fit into a message of 1 MiB, which lack the state before a change of variations", async () => {
    const variations = manyOf("x".repeat(1_000));
    const flag = await flags.createFlag({ value_type: "string", variations, targeting_rules });
    const changed = variations.map((each) => ({ ...each, value: each.value.toUpperCase() }));
    const { status } = await flags.patch(`/api/v1/flags/${flag.id}`, { variations: changed });
    expect(status).toBe(200);
    const [, event] = await flags.eventsOf(flag.id);
    expect(event.changes.variations.to).toEqual(changed);
    expect(event.state_before).toBeNull();
    expect(await largestMessage(flag.id)).toBeLessThan(mebibyte);
  });

  it("is rejected if its entry does not fit, because values have too many quotes", async () => {
    const quotes = (length: number) => manyOf('"'.repeat(length));
    const body = { key: flags.freshKey(), name: "f", value_type: "string", targeting_rules };
    const rejected = await flags.post({ ...body, variations: quotes(2_600) });
    expect([rejected.status, rejected.body.error.code]).toEqual([400, "VALIDATION_001"]);
    expect(rejected.body.error.message).toContain("must have at most 1024000 bytes together");
    const created = await flags.post({ ...body, variations: quotes(2_400) });
    expect(created.status).toBe(201);
    expect(await largestMessage(created.body.id)).toBeLessThan(mebibyte);
    const changed = await flags.patch(`/api/v1/flags/${created.body.id}`, {
      variations: quotes(2_600),
    });
    expect(changed.status).toBe(400);
  });
});
