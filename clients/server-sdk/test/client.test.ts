import { readFile } from "node:fs/promises";
import { eventually } from "@halyard/testing";
import { afterEach, describe, expect, test } from "@jest/globals";
import type { ClientEvents } from "../src/client.ts";
import { environmentId } from "./support/fake-edge.ts";
import { endAll, newCacheFile, serverKey, setUp, startClient } from "./support/setup.ts";

afterEach(endAll);

const staff = {
  targeting_rules: [
    { conditions: [{ attribute: "plan", operator: "equals" as const, value: "staff" }] },
  ],
};

function bootstrapOf(flags: Record<string, boolean>) {
  const entries = Object.entries(flags).map(([key, enabled]) => [
    key,
    { enabled, rollout_percentage: 100, targeting_rules: [], version: 1 },
  ]);
  return { format: 2, environment_id: environmentId, flags: Object.fromEntries(entries) };
}

describe("a connected client", () => {
  test("evaluates the flags of the service for a user", async () => {
    const { client } = await setUp({}, (edge) => edge.change("tools", staff));
    expect(await client.ready()).toBe(true);
    expect(client.isEnabled("new-checkout")).toBe(true);
    expect(client.isEnabled("tools", { id: "user-1", plan: "staff" })).toBe(true);
    expect(client.isEnabled("tools", { id: "user-1", plan: "free" })).toBe(false);
    expect(client.isEnabled("tools")).toBe(false);
    expect(client.allFlags({ plan: "staff" })).toEqual({ "new-checkout": true, tools: true });
  });

  test("takes id and user_id as the user's id, and targetingKey as an attribute", async () => {
    const rule = { attribute: "id", operator: "equals" as const, value: "user-1" };
    const { client } = await setUp({}, (edge) =>
      edge.change("mine", { targeting_rules: [{ conditions: [rule] }] }),
    );
    await client.ready();
    for (const name of ["id", "user_id"])
      expect(client.isEnabled("mine", { [name]: "user-1" })).toBe(true);
    expect(client.isEnabled("mine", { targetingKey: "user-1" })).toBe(false);
  });

  test("returns value, variation and reason", async () => {
    const { client } = await setUp({}, (edge) => edge.change("off", { enabled: false }));
    expect(client.evaluate("new-checkout", {}, true)).toEqual({
      ...{ value: true, variation: undefined, reason: "not_ready", error: "NOT_READY" },
    });
    await client.ready();
    expect(client.evaluate("new-checkout")).toEqual({
      ...{ value: true, variation: "on", reason: "static" },
    });
    expect(client.evaluate("off", {}, true)).toEqual({
      ...{ value: false, variation: "off", reason: "disabled" },
    });
    expect(client.evaluate("missing", {}, true)).toEqual({
      ...{ value: true, variation: undefined, reason: "flag_not_found", error: "FLAG_NOT_FOUND" },
    });
  });

  test("explains a value by its rules", async () => {
    const { client } = await setUp({}, (edge) => edge.change("tools", staff));
    await client.ready();
    expect(client.explain("tools", { plan: "free" })).toMatchObject({
      ...{ value: false, reason: "default" },
      rules: [{ matched: false, conditions: [{ attribute: "plan", held: false }] }],
    });
    expect(client.explain("missing")).toBeUndefined();
  });

  test("applies changes, and names the flags whose settings changed", async () => {
    const { client, edge } = await setUp({}, (given) => given.change("other", {}));
    const changes: ClientEvents["change"][] = [];
    client.on("change", (change) => changes.push(change));
    await client.ready();
    edge.change("new-checkout", { enabled: false });
    edge.change("other", undefined);
    edge.change("added", {});
    await eventually(() => changes.length === 4);
    expect(changes.map(({ keys }) => keys)).toEqual([
      ["new-checkout", "other"],
      ...[["new-checkout"], ["other"], ["added"]],
    ]);
    expect(changes.every(({ source }) => source === "stream")).toBe(true);
    expect(client.allFlags()).toEqual({ "new-checkout": false, added: true });
  });

  test("says where its flags come from", async () => {
    const { client } = await setUp();
    expect(client.status).toEqual({
      ...{ source: "none", current: false, lastUpdateAt: undefined, connection: "connecting" },
    });
    await client.ready();
    expect(client.status).toEqual({
      ...{ source: "stream", current: true, connection: "streaming" },
      lastUpdateAt: expect.any(Date),
    });
  });

  test("stops calling a listener that was removed", async () => {
    const { client, edge } = await setUp();
    let calls = 0;
    const count = () => {
      calls += 1;
    };
    const remove = client.on("change", count);
    client.on("change", count);
    const seen = new Promise<void>((resolve) => client.on("change", () => resolve()));
    remove();
    client.off("change", count);
    edge.change("added", {});
    await seen;
    expect(calls).toBe(0);
  });

  test("works with methods that are passed around", async () => {
    const { client } = await setUp();
    const { isEnabled, ready } = client;
    await ready();
    expect(["new-checkout"].map((key) => isEnabled(key))).toEqual([true]);
  });
});

describe("the sources of flags", () => {
  test("a bootstrap object is used until the service responds", async () => {
    const { client } = await setUp({
      bootstrap: bootstrapOf({ "new-checkout": false, old: true }),
    });
    expect(client.status.source).toBe("bootstrap");
    expect(client.allFlags()).toEqual({ "new-checkout": false, old: true });
    await client.ready();
    expect(client.allFlags()).toEqual({ "new-checkout": true });
  });

  test("a cache file has the flags before the first request, and comes before the bootstrap object", async () => {
    const cacheFile = await newCacheFile();
    const first = await setUp({ cacheFile });
    await first.client.ready();
    await first.client.close();
    await first.served.stop();

    const bootstrap = bootstrapOf({ "new-checkout": false });
    const next = startClient(first.clock, { baseUrl: first.served.url, cacheFile, bootstrap });
    expect(next.status).toMatchObject({ source: "cache", current: false });
    expect(next.status.lastUpdateAt).toEqual(expect.any(Date));
    expect(next.isEnabled("new-checkout")).toBe(true);
  });

  test("a client with a cache file receives only what changed since", async () => {
    const cacheFile = await newCacheFile();
    const { client, edge, served, clock } = await setUp({ cacheFile });
    await client.ready();
    await client.close();
    const { tag } = edge;
    edge.change("added", {});
    const next = startClient(clock, { baseUrl: served.url, cacheFile });
    expect(await next.ready()).toBe(true);
    expect(edge.of("stream").at(-1)?.headers["last-event-id"]).toBe(tag);
    expect(next.allFlags()).toEqual({ "new-checkout": true, added: true });
  });

  test("a cache file follows the changes", async () => {
    const cacheFile = await newCacheFile();
    const { client, edge, clock } = await setUp({ cacheFile });
    await client.ready();
    const saved = () => readFile(cacheFile, "utf8");
    clock.advance(1_000);
    await eventually(async () => (await saved()).includes(JSON.stringify(edge.tag).slice(1, -1)));
    edge.change("added", {});
    await eventually(() => client.isEnabled("added"));
    await eventually(async () => {
      clock.advance(1_000);
      return (await saved()).includes("added");
    });
  });

  test("without any source, the caller's fallback is the value", async () => {
    const { client } = await setUp({}, (edge) => edge.behave("stream", "hang"));
    expect([client.isEnabled("a"), client.isEnabled("a", {}, true)]).toEqual([false, true]);
    expect(client.allFlags()).toEqual({});
  });
});

describe("ready", () => {
  test("resolves with false after the time-out, and with true once flags arrive", async () => {
    const { client, edge, clock } = await setUp({}, (given) => given.behave("stream", "reset"));
    const ready = client.ready({ timeoutMs: 200 });
    clock.advance(200);
    expect(await ready).toBe(false);
    edge.behave("stream", "normal");
    const later = client.ready({ timeoutMs: 60_000 });
    await eventually(() => {
      clock.advance(100);
      return client.status.current;
    });
    expect(await later).toBe(true);
  });

  test("resolves with false when the client is closed", async () => {
    const { client } = await setUp({}, (edge) => edge.behave("stream", "hang"));
    const ready = client.ready();
    await client.close();
    expect(await ready).toBe(false);
  });
});

describe("usage reports", () => {
  test("contain the evaluations of a minute by flag and value, and nothing about users", async () => {
    const { client, edge, clock } = await setUp({}, (given) => given.change("tools", staff));
    await client.ready();
    client.isEnabled("new-checkout", { id: "secret-user" });
    client.evaluate("new-checkout");
    client.isEnabled("tools", { plan: "free" });
    client.allFlags({ plan: "staff" });
    client.explain("tools");
    client.isEnabled("missing");
    clock.advance(60_001);
    const [report] = await eventually(() => edge.of("usage"), {
      until: ({ length }) => length > 0,
    });
    expect(JSON.parse(report?.body ?? "").flags).toEqual({
      "new-checkout": { true: 3, false: 0 },
      tools: { true: 1, false: 1 },
    });
    expect(report?.headers.authorization).toBe(`Bearer ${serverKey}`);
    expect(report?.body).not.toContain("secret-user");
  });

  test("are not sent without evaluations", async () => {
    const { client, edge, clock } = await setUp();
    await client.ready();
    clock.advance(60_001);
    await client.close();
    expect(edge.of("usage")).toEqual([]);
  });

  test("are sent again with the same key after an outage, and later counts follow", async () => {
    const { client, edge, clock } = await setUp({}, (given) =>
      given.behave("usage", { status: 503, headers: { "retry-after": "30" } }),
    );
    await client.ready();
    client.isEnabled("new-checkout");
    clock.advance(60_001);
    await eventually(() => edge.of("usage").length === 1);
    edge.behave("usage", "normal");
    client.isEnabled("new-checkout");
    await eventually(() => {
      clock.advance(1_000);
      return edge.of("usage").length === 3;
    });
    const [first, again, next] = edge.of("usage");
    expect(again).toMatchObject({ body: first?.body });
    expect(again?.headers["idempotency-key"]).toBe(first?.headers["idempotency-key"]);
    expect(next?.headers["idempotency-key"]).not.toBe(first?.headers["idempotency-key"]);
    expect(JSON.parse(next?.body ?? "").flags).toEqual({ "new-checkout": { true: 1, false: 0 } });
  });

  test("fit the size that the service accepts", async () => {
    const keys = Array.from({ length: 3_000 }, (_, index) => `flag-${index}`.padEnd(100, "x"));
    const flags = Object.fromEntries(keys.map((key) => [key, true]));
    const { client, edge } = await setUp({ bootstrap: bootstrapOf(flags) }, (given) =>
      given.behave("stream", "hang"),
    );
    client.allFlags();
    await client.close();
    const reports = edge.of("usage");
    expect(Math.max(...reports.map(({ body }) => body.length))).toBeLessThan(65_536);
    const reported = reports.flatMap(({ body }) => Object.keys(JSON.parse(body).flags));
    expect(reported).toEqual(keys);
  });

  test.each([404, 429, 503])("are sent again after %i", async (status) => {
    const { client, edge, clock } = await setUp({}, (given) => given.behave("usage", { status }));
    await client.ready();
    client.isEnabled("new-checkout");
    clock.advance(60_001);
    await eventually(() => edge.of("usage").length === 1);
    edge.behave("usage", "normal");
    await eventually(() => {
      clock.advance(5_000);
      return edge.of("usage").length > 1;
    });
    await client.close();
    const ids = edge.of("usage").map(({ headers }) => headers["idempotency-key"]);
    expect(ids).toEqual(ids.map(() => expect.any(String)));
    expect(new Set(ids).size).toBe(1);
  });

  test("stop after a rejection that concerns all of them", async () => {
    const { client, edge, clock, warnings } = await setUp({}, (given) =>
      given.behave("usage", { status: 403, headers: { "content-type": "application/json" } }),
    );
    await client.ready();
    client.isEnabled("new-checkout");
    clock.advance(60_001);
    await eventually(() => warnings().some((line) => line.includes("usage report")));
    client.isEnabled("new-checkout");
    clock.advance(300_000);
    await client.close();
    expect(edge.of("usage").length).toBe(1);
  });

  test("are sent again after the 403 of a firewall", async () => {
    const { client, edge, clock } = await setUp({}, (given) =>
      given.behave("usage", { status: 403, headers: { "content-type": "text/html" } }),
    );
    await client.ready();
    client.isEnabled("new-checkout");
    clock.advance(60_001);
    await eventually(() => edge.of("usage").length === 1);
    edge.behave("usage", "normal");
    await eventually(() => {
      clock.advance(5_000);
      return edge.of("usage").length === 2;
    });
    await client.close();
    const [first, second] = edge.of("usage");
    expect(second?.headers["idempotency-key"]).toBe(first?.headers["idempotency-key"]);
  });
});

describe("closing a client", () => {
  test("sends the remaining counts, disconnects, and leaves no timer", async () => {
    const { client, edge, clock } = await setUp();
    await client.ready();
    client.isEnabled("new-checkout");
    await Promise.all([client.close(), client.close()]);
    expect(edge.of("usage").length).toBe(1);
    await eventually(() => edge.openStreams === 0);
    expect(clock.timers).toBe(0);
    expect(client.status.connection).toBe("closed");
  });

  test("takes two seconds at most if the service does not respond", async () => {
    const { client, clock } = await setUp({}, (edge) => edge.behave("usage", "hang"));
    await client.ready();
    client.isEnabled("new-checkout");
    const closed = client.close();
    clock.advance(2_000);
    await closed;
    expect(clock.timers).toBe(0);
  });

  test("keeps the flags in memory", async () => {
    const { client, edge } = await setUp();
    await client.ready();
    await client.close();
    edge.change("new-checkout", { enabled: false });
    expect(client.isEnabled("new-checkout")).toBe(true);
  });
});
