import { describe, expect, test } from "@jest/globals";
import { type Client, createClient, createTestClient } from "../src/index.ts";

describe("a test client", () => {
  test("has the values of the test, for every user", async () => {
    const client: Client = createTestClient({ "new-checkout": true, "dark-mode": false });
    expect(await client.ready()).toBe(true);
    expect(client.isEnabled("new-checkout", { id: "user-1" })).toBe(true);
    expect(client.isEnabled("dark-mode", {}, true)).toBe(false);
    expect(client.isEnabled("missing", {}, true)).toBe(true);
    expect(client.evaluate("missing").reason).toBe("flag_not_found");
    expect(client.allFlags()).toEqual({ "new-checkout": true, "dark-mode": false });
    expect(client.status).toMatchObject({ source: "stream", current: true });
  });

  test("emits a change when a test sets a value, and restores the first values", () => {
    const client = createTestClient({ "new-checkout": true, "dark-mode": false });
    const changes: (readonly string[])[] = [];
    client.on("change", ({ keys }) => changes.push(keys));
    client.set("dark-mode", true);
    client.set("dark-mode", true);
    client.set("new-checkout", false);
    expect(client.allFlags()).toEqual({ "new-checkout": false, "dark-mode": true });
    client.reset();
    expect(client.allFlags()).toEqual({ "new-checkout": true, "dark-mode": false });
    expect(changes).toEqual([["dark-mode"], ["new-checkout"], ["new-checkout", "dark-mode"]]);
  });
});

describe("a test client with typed flags", () => {
  test("has values of each type", () => {
    const client: Client = createTestClient({ color: "blue", limit: 5, layout: { columns: 2 } });
    expect(client.getString("color", {}, "red")).toBe("blue");
    expect(client.getInteger("limit", {}, 0)).toBe(5);
    expect(client.getObject("layout", {}, null)).toEqual({ columns: 2 });
    expect(client.getNumberDetails("color", {}, 7)).toMatchObject({
      ...{ value: 7, error: "TYPE_MISMATCH" },
    });
    expect(client.allFlags()).toEqual({});
  });

  test("emits a change when a test sets another value", () => {
    const layout = { columns: [2] };
    const client = createTestClient({ layout });
    const changes: (readonly string[])[] = [];
    client.on("change", ({ keys }) => changes.push(keys));
    client.set("layout", { columns: [2] });
    expect(changes).toEqual([]);
    client.set("layout", { columns: [3] });
    expect(changes).toEqual([["layout"]]);
    expect(client.getObject("layout", {}, null)).toEqual({ columns: [3] });
    client.reset();
    expect(client.getObject("layout", {}, null)).toEqual(layout);
  });
});

test("The generic parameter restricts the keys of a client", async () => {
  type Keys = "new-checkout" | "dark-mode";
  const clients = [
    createTestClient<Keys>({ "new-checkout": true }),
    createClient<Keys>({ baseUrl: "", serverKey: "", logger: { error: () => undefined } }),
  ];
  for (const client of clients) {
    const all: Record<Keys, boolean> = client.allFlags();
    expect(all["dark-mode"]).toBeUndefined();
    // @ts-expect-error No such key.
    expect(client.isEnabled("new-chekcout")).toBe(false);
    await client.close();
  }
});
