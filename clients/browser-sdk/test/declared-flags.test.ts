import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { type Client, createTestClient, defineFlags } from "../src/index.ts";
import { closeClients, startClient } from "./support/started-client.ts";

/** Types of a client whose flags are declared. The compiler checks this file, also where nothing runs. */
const flags = defineFlags({
  checkout: "boolean",
  color: "string",
  ratio: "number",
  limits: "object",
});

const values = {
  checkout: true,
  color: "blue",
  ratio: 0.5,
  limits: { value: { seats: 5 }, variation: "small" },
} as const;

beforeEach(() => void jest.spyOn(console, "warn").mockReturnValue());
afterEach(() => {
  jest.restoreAllMocks();
  closeClients();
});

describe("given flags with declared types", () => {
  const client = createTestClient<typeof flags>(values);

  it("returns values in these types", () => {
    const isEnabled: boolean = client.isEnabled("checkout");
    const color: string = client.getString("color", "red");
    const ratio: number = client.getNumber("ratio", 1);
    const { seats }: { seats: number } = client.getObject("limits", { seats: 0 });
    expect([isEnabled, color, ratio, seats]).toEqual([true, "blue", 0.5, 5]);
  });

  it("widens the fallback of details", () => {
    const { value }: { value: string } = client.details("color", "red");
    const ofBoolean: boolean = client.details("checkout", false).value;
    // @ts-expect-error: a text is no number.
    const ofNumber: number = client.details("color", "red").value;
    expect([value, ofBoolean, ofNumber]).toEqual(["blue", true, "blue"]);
  });

  it("rejects keys of other types when compiled, and returns the fallback", () => {
    // @ts-expect-error: a text is not on or off.
    expect(client.isEnabled("color")).toBe(false);
    // @ts-expect-error: the flag is an object.
    expect(client.getString("limits", "red")).toBe("red");
    // @ts-expect-error: no such flag.
    expect(client.getNumber("missing", 1)).toBe(1);
    // @ts-expect-error: the fallback has another type than the flag.
    expect(client.details("ratio", "half").error).toBe("TYPE_MISMATCH");
    // @ts-expect-error: an object is no fallback of a text.
    expect(client.details("color", {}).error).toBe("TYPE_MISMATCH");
  });

  it("accepts initial values of these types only", () => {
    const own = createTestClient<typeof flags>({ ratio: { value: 1, variation: "whole" } });
    own.set("color", "red");
    // @ts-expect-error: a number is no text.
    own.set("color", 1);
    // @ts-expect-error: an object has its variation beside it.
    own.set("limits", { seats: 5 });
    // @ts-expect-error: the flag is boolean.
    createTestClient<typeof flags>({ checkout: "on" });
    expect(own.getNumber("ratio", 0)).toBe(1);
  });

  it("has the boolean flags in allFlags", () => {
    const all = client.allFlags();
    const isEnabled: boolean | undefined = all.checkout;
    // @ts-expect-error: not a boolean flag.
    expect([isEnabled, all.color]).toEqual([true, undefined]);
  });

  it("is a client of any flags for functions that do not know the keys", () => {
    const { client: connected } = startClient({ baseUrl: "" });
    const keysOf = (any: Client) => Object.keys(any.allValues());
    expect(keysOf(client)).toEqual(Object.keys(values));
    expect(keysOf(connected)).toEqual([]);
  });

  it("accepts an interface as the fallback", () => {
    interface Limits {
      seats: number;
    }
    const fallback: Limits = { seats: 0 };
    const found: Limits = client.getObject("limits", fallback);
    expect(found).toEqual(client.details("limits", fallback).value);
  });
});

describe("given an object", () => {
  const layout = { value: { columns: [1, 2] }, variation: "wide" };

  it("is read-only at all levels when compiled", () => {
    const client = createTestClient({ layout });
    const { columns } = client.getObject("layout", { columns: [0] });
    // @ts-expect-error: the list is read-only.
    expect(() => columns.push(3)).toThrow(TypeError);
    const { value } = client.details("layout", { columns: [0] });
    // @ts-expect-error: the list is read-only.
    expect(() => value.columns.push(3)).toThrow(TypeError);
    // @ts-expect-error: the member is read-only.
    expect(() => (value.columns = [])).toThrow(TypeError);
    expect(columns).toEqual([1, 2]);
  });
});

describe("given flags with declared keys", () => {
  it("accepts each key with every type, and rejects others", () => {
    const client = createTestClient<"checkout" | "color">({ checkout: true, color: "blue" });
    expect(client.isEnabled("checkout")).toBe(true);
    expect(client.getString("color", "red")).toBe("blue");
    // @ts-expect-error: no such flag.
    expect(client.getString("missing", "red")).toBe("red");
  });
});
