import { eventually } from "@halyard/testing";
import { afterEach, describe, expect, test } from "@jest/globals";
import type { Settings } from "./support/fake-edge.ts";
import { endAll, type Setup, setUp } from "./support/setup.ts";

afterEach(endAll);

const percentage = { rollout_percentage: 50 };
/** The buckets of these users for the flag `payments` are 2003 and 6972. */
const inside = { id: "user-1" };
const outside = { id: "user-6" };

const colors: Settings = {
  value_type: "string",
  variations: [
    { key: "blue", value: "#0057b8" },
    { key: "red", value: "#c8102e" },
  ],
  serve: { variation: "blue" },
  off_variation: "red",
};

async function withFlags(flags: Record<string, Settings>): Promise<Setup> {
  const setup = await setUp({}, (edge) => {
    for (const [key, settings] of Object.entries(flags)) edge.change(key, settings);
  });
  await setup.client.ready();
  return setup;
}

describe("a flag with an unmet requirement", () => {
  const checkout = { requires: [{ flag: "payments", is: "on" as const }] };

  test("is off, and the evaluation names the required flag", async () => {
    const { client } = await withFlags({ payments: percentage, checkout });
    expect(client.evaluate("checkout", inside)).toEqual({
      ...{ value: true, variation: "on", reason: "static" },
    });
    expect(client.evaluate("checkout", outside)).toEqual({
      ...{ value: false, variation: "off", reason: "prerequisite_failed" },
      prerequisite: "payments",
    });
    expect(client.allFlags(outside)).toMatchObject({ checkout: false, payments: false });
  });

  test("names the first required flag of several", async () => {
    const requires = [
      { flag: "new-checkout", is: "on" as const },
      { flag: "payments", is: "on" as const },
      { flag: "never", is: "on" as const },
    ];
    const flags = { payments: percentage, never: { enabled: false }, checkout: { requires } };
    const { client } = await withFlags(flags);
    expect(client.evaluate("checkout", outside).prerequisite).toBe("payments");
    expect(client.evaluate("checkout", inside).prerequisite).toBe("never");
  });

  test("serves its off variation if it is typed", async () => {
    const { client } = await withFlags({ payments: percentage, color: { ...colors, ...checkout } });
    expect(client.getString("color", inside, "none")).toBe("#0057b8");
    expect(client.getStringDetails("color", outside, "none")).toEqual({
      ...{ value: "#c8102e", variation: "red", reason: "prerequisite_failed" },
      prerequisite: "payments",
    });
    expect(client.allValues(outside)).toMatchObject({
      color: { value: "#c8102e", variation: "red" },
    });
  });

  test("can require variations of a typed flag", async () => {
    const banner = { requires: [{ flag: "color", is: ["red", "green"] }] };
    const { client, edge } = await withFlags({ color: colors, banner });
    expect(client.isEnabled("banner")).toBe(false);
    edge.change("color", { ...colors, serve: { variation: "red" } });
    await eventually(() => client.isEnabled("banner"));
  });

  test("changes in one event with the required flag", async () => {
    const { client, edge } = await withFlags({ payments: {}, checkout, color: colors });
    const changes: (readonly string[])[] = [];
    client.on("change", ({ keys }) => void changes.push([...keys].sort()));
    edge.change("payments", { enabled: false });
    await eventually(() => changes.length > 0);
    expect(changes).toEqual([["checkout", "payments"]]);
    expect(client.isEnabled("checkout")).toBe(false);
  });

  test("is explained with the chain of requirements, and with audiences", async () => {
    const staff = { match: [[{ attribute: "plan", operator: "equals", value: "staff" }]] };
    const { client, edge } = await withFlags({ checkout });
    edge.inOneStep(() => {
      edge.changeAudience("staff", staff);
      edge.change("payments", { targeting_rules: [{ conditions: [{ audience: "staff" }] }] });
    });
    await eventually(() => client.explain("checkout", { plan: "staff" })?.value === true);
    expect(client.explain("checkout", { plan: "free" })).toMatchObject({
      reason: "prerequisite_failed",
      requires: [{ flag: "payments", held: false, value: false, reason: "default" }],
    });
    const [rule] = client.explain("payments", { plan: "staff" })?.rules ?? [];
    expect(rule?.conditions).toMatchObject([{ audience: "staff", held: true }]);
  });
});

test("a flag that cannot be evaluated is the fallback for every method, with one warning", async () => {
  const { client, warnings } = await withFlags({
    a: { requires: [{ flag: "b", is: "off" }] },
    b: { requires: [{ flag: "a", is: "off" }] },
    color: { ...colors, requires: [{ flag: "unknown", is: "off" }] },
  });
  expect(client.isEnabled("a", {}, true)).toBe(true);
  expect(client.evaluate("a").error).toBe("FLAG_NOT_FOUND");
  expect(client.getString("color", {}, "none")).toBe("none");
  expect(client.getStringDetails("color", {}, "none").error).toBe("FLAG_NOT_FOUND");
  expect(client.explain("a")).toBeUndefined();
  expect(client.allValues()).toEqual({ "new-checkout": { value: true, variation: "on" } });
  expect(warnings()).toEqual([
    'Halyard: The flag "a" counts as not found: its requirements form a circle.',
    'Halyard: The flag "color" counts as not found: the required flag "unknown" is unknown.',
  ]);
});
