import { expect, test } from "@jest/globals";
import { createClient, createTestClient, defineFlags, type Evaluated } from "../src/index.ts";

/** The compiler checks these tests: each `@ts-expect-error` fails it if the line below has no error. */
const types = defineFlags({
  "new-checkout": "boolean",
  "checkout-color": "string",
  "max-items": "number",
  layout: "object",
});

test("declared types restrict each method to the keys of its type", async () => {
  const clients = [
    createTestClient<typeof types>({ "checkout-color": "blue", "max-items": 5 }),
    createClient<typeof types>({ baseUrl: "", serverKey: "", logger: { error: () => undefined } }),
  ];
  for (const client of clients) {
    const color: string = client.getString("checkout-color", {}, "blue");
    expect(color).toBe("blue");
    expect(client.getNumber("max-items", {}, 5)).toBe(5);
    expect(client.getObject("layout", {}, null)).toBeNull();
    // @ts-expect-error The flag is no text.
    client.getString("max-items", {}, "blue");
    // @ts-expect-error The flag is no number.
    client.getInteger("layout", {}, 1);
    // @ts-expect-error The flag is no object.
    client.getObjectDetails("new-checkout", {}, null);
    // @ts-expect-error The flag is not boolean.
    client.isEnabled("checkout-color");
    // @ts-expect-error No such key.
    client.getString("checkout-colour", {}, "blue");
    // @ts-expect-error The fallback is no text.
    client.getString("checkout-color", {}, 5);
    const all: Record<"new-checkout", boolean> = client.allFlags();
    // @ts-expect-error Only boolean flags.
    expect(all.layout).toBeUndefined();
    const values: Record<keyof typeof types, Evaluated> = client.allValues();
    // @ts-expect-error No such key.
    expect(values.color).toBeUndefined();
    await client.close();
  }
});

test("declared types restrict the values of a test", () => {
  const client = createTestClient<typeof types>();
  client.set("max-items", 5);
  expect(client.getInteger("max-items", {}, 0)).toBe(5);
  // @ts-expect-error The flag is a number.
  client.set("max-items", "five");
  // @ts-expect-error The flag is a text.
  createTestClient<typeof types>({ "checkout-color": true });
});

test("an object is read-only at all levels", () => {
  const client = createTestClient({ layout: { columns: [1, 2] } });
  const { columns } = client.getObject("layout", {}, { columns: [0] });
  expect(columns).toEqual([1, 2]);
  // @ts-expect-error The list is read-only.
  expect(() => columns.push(3)).toThrow(TypeError);
});

test("a declaration of another type does not compile", () => {
  // @ts-expect-error No such type.
  expect(defineFlags({ since: "date" })).toEqual({ since: "date" });
});

test("a union of keys restricts all methods to these keys", () => {
  const client = createTestClient<"new-checkout" | "color">({ color: "blue" });
  expect(client.getString("color", {}, "red")).toBe("blue");
  // @ts-expect-error No such key.
  expect(client.getString("colour", {}, "red")).toBe("red");
});
