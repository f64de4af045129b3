import { createHash } from "node:crypto";
import { checkFlagEvent } from "@halyard/contracts";
import { afterAll, describe, expect, it } from "@jest/globals";
import { headOfEvent } from "../../src/publishing/stream-publisher.ts";
import { flagsOf } from "../flag-fixture.ts";
import { openManagement, seedProject } from "../management-fixture.ts";

/** Tests the events and audit entries of typed flags. */

const management = await openManagement();
afterAll(() => management.close());
const project = await seedProject(management);
const { createFlag, patch, eventsOf } = flagsOf(management, project);

const blue = { key: "blue", name: "Blue", value: "#00f" };
const red = { key: "red", value: "#f00" };
const createColor = (fields: object = {}) =>
  createFlag({ value_type: "string", variations: [blue, red], ...fields });

/** Changes a flag, and returns the last event, which must match its published schema. */
async function eventAfter(flag: { id: string }, body: object) {
  expect(await patch(`/api/v1/flags/${flag.id}`, body)).toMatchObject({ status: 200 });
  const event = (await eventsOf(flag.id)).at(-1);
  expect(checkFlagEvent(event)).toMatchObject({ ok: true });
  return event;
}

async function auditOf(flag: { id: string }) {
  const path = `/api/v1/projects/${project.projectId}/changes?flag_id=${flag.id}`;
  const { body } = await management.call(path, { key: project.serverKey });
  return body.changes;
}

describe("a change of variations", () => {
  it("is one flag.updated with both lists", async () => {
    const flag = await createColor();
    const green = { key: "green", value: "#0f0" };
    expect(await eventAfter(flag, { variations: [blue, red, green] })).toMatchObject({
      event: "flag.updated",
      changes: { variations: { from: [blue, red], to: [blue, red, green] } },
    });
  });

  it("has the size and hash of a value above 1 KiB in the event, and the whole value in the audit log", async () => {
    const flag = await createColor();
    // With its quotes, the first value has 1,024 bytes of JSON.
    const [fits, large] = ["x".repeat(1_022), "ä".repeat(512)];
    const variations = [
      { ...blue, value: fits },
      { ...red, value: large },
    ];
    const json = JSON.stringify(large);
    const sha256 = createHash("sha256").update(json).digest("hex");
    const { changes } = await eventAfter(flag, { variations });
    expect(changes.variations.to).toEqual([
      { ...blue, value: fits },
      { key: "red", value: { sha256, bytes: 1_026 } },
    ]);
    const [entry] = await auditOf(flag);
    expect(entry).toMatchObject({ action: "settings", environment_id: null });
    expect([entry.before.variations, entry.after.variations]).toEqual([[blue, red], variations]);
  });

  it("has an event below the maximum size of a message, with the largest state", async () => {
    const name = "😀".repeat(200);
    const condition = { attribute: "a", operator: "equals", value: "x".repeat(9_900) };
    const flag = await createColor({
      description: "😀".repeat(2_000),
      targeting_rules: [{ conditions: Array.from({ length: 49 }, () => condition) }],
    });
    const many = (letter: string) =>
      Array.from({ length: 50 }, (_, index) => ({
        ...{ key: index === 0 ? "blue" : `${letter}${index}`.padEnd(64, "_") },
        ...{ name, value: letter.repeat(1_022) },
      })).with(1, { ...red, name });
    await eventAfter(flag, { variations: many("a") });
    const event = await eventAfter(flag, { variations: many("b"), description: "" });
    const bytes = Buffer.byteLength(JSON.stringify(event));
    expect(bytes).toBeGreaterThan(600 * 1024);
    expect(bytes).toBeLessThan(1024 * 1024);
  });
});

describe("the audit entry of a number with another text", () => {
  const two = (text: string) => `"variations":[{"key":"rate","value":${text}}]`;
  const changes = `/api/v1/projects/${project.projectId}/changes`;
  const authorization = `Bearer ${project.serverKey}`;

  /** Changes the text of a number from `1` to `1.0`, in a flag that has no other value. */
  async function changeText(): Promise<string> {
    const variations = [{ key: "rate", value: 1 }];
    const flag = await createFlag({ value_type: "number", variations });
    const changed = await fetch(`${management.url}/api/v1/flags/${flag.id}`, {
      method: "PATCH",
      headers: { authorization, "content-type": "application/json" },
      body: `{${two("1.0")}}`,
    });
    expect(changed.status).toBe(200);
    return flag.id;
  }

  it("has both texts", async () => {
    const flagId = await changeText();
    const response = await fetch(`${management.url}${changes}?flag_id=${flagId}&limit=1`, {
      headers: { authorization },
    });
    const text = await response.text();
    expect(text).toContain(`"before":{`);
    expect(text.match(/"variations":\[[^\]]*\]/g)).toEqual([two("1"), two("1.0")]);
  });

  it("has both texts in the stream of changes", async () => {
    const aborting = new AbortController();
    const stream = await fetch(`${management.url}${changes}/stream`, {
      headers: { authorization },
      signal: aborting.signal,
    });
    await changeText();
    let text = "";
    for await (const chunk of stream.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (/"action":"settings".*\n\n/.test(text)) break;
    }
    aborting.abort();
    expect(text).toMatch(/"before":\{.*"after":\{/);
    expect(text).toContain(two("1"));
    expect(text).toContain(two("1.0"));
  });
});

describe("a change of what a flag serves", () => {
  it("is one flag_state.updated with the state, and an audit entry with both states", async () => {
    const flag = await createColor();
    const split = [
      { variation: "blue", weight: 50.5 },
      { variation: "red", weight: 49.5 },
    ];
    const before = { serve: { variation: "blue" }, off_variation: "red" };
    const after = {
      serve: {
        split: [
          { variation: "blue", weight: 50.5, ranges: [[0, 5050]] },
          { variation: "red", weight: 49.5, ranges: [[5050, 10_000]] },
        ],
      },
      off_variation: null,
    };
    const event = await eventAfter(flag, { serve: { split }, off_variation: null });
    expect(event).toMatchObject({ event: "flag_state.updated", state: after });
    const [entry] = await auditOf(flag);
    expect(entry).toMatchObject({ action: "state", environment_id: project.environmentId });
    expect([entry.before, entry.after]).toMatchObject([before, after]);
    expect(JSON.stringify(entry.after.serve)).toBe(JSON.stringify(after.serve));
  });
});

describe("the creation and the deletion of a typed flag", () => {
  it("has its type and its values in flag.created, with the size and hash of a value above 1 KiB", async () => {
    const large = "x".repeat(1_023);
    const sha256 = createHash("sha256").update(JSON.stringify(large)).digest("hex");
    const flag = await createColor({ variations: [blue, { ...red, value: large }] });
    const [created] = await eventsOf(flag.id);
    expect(checkFlagEvent(created)).toMatchObject({ ok: true });
    expect(created).toMatchObject({
      ...{ event: "flag.created", value_type: "string" },
      variations: [blue, { key: "red", value: { sha256, bytes: 1_025 } }],
    });
  });

  it("publishes a flag whose values look like the state of an event", async () => {
    const value = { a: 1, state: { enabled: true } };
    const flag = await createFlag({ value_type: "object", variations: [{ key: "only", value }] });
    const [created] = await eventsOf(flag.id);
    expect(headOfEvent(JSON.stringify(created))).toMatchObject({ flag: { id: flag.id } });
  });

  it("leaves flag.created of a boolean flag without them", async () => {
    const [created] = await eventsOf((await createFlag()).id);
    expect(Object.keys(created)).toEqual([
      ...["id", "event", "timestamp", "version", "organization_id", "project_id", "flag"],
      ...["environment", "state", "state_before", "triggered_by", "cause"],
    ]);
  });

  it("have its type and its values in the audit log", async () => {
    const object = { key: "object", value: JSON.parse('{"__proto__":{"a":1},"b":[0.1,1e-21]}') };
    const flag = await createFlag({ value_type: "object", variations: [object] });
    await management.call(`/api/v1/flags/${flag.id}`, {
      method: "DELETE",
      key: project.serverKey,
    });
    const [deleted, created] = await auditOf(flag);
    const values = { value_type: "object", variations: [object] };
    const served = { serve: { variation: "object" }, off_variation: null };
    expect(created).toMatchObject({ action: "created", after: { ...values, ...served } });
    expect(deleted).toMatchObject({ action: "deleted", before: { ...values, ...served } });
  });
});
