import { afterAll, afterEach, describe, expect, it, jest } from "@jest/globals";
import type { ClientOptions } from "../src/options.ts";
import { startFakeEdge } from "./support/fake-edge.ts";
import { clientKey, closeClients, startClient } from "./support/started-client.ts";

/** Arguments and options that only plain JavaScript can pass. No method throws or rejects. */
const edge = await startFakeEdge({ checkout: true });
afterAll(() => edge.close());
afterEach(closeClients);

function fail(): never {
  throw new Error("hostile");
}

/** An object that throws when anything is read from it. */
const hostile = new Proxy({}, { get: fail, ownKeys: fail, getOwnPropertyDescriptor: fail });
const anything = [
  ...[undefined, null, true, 0, Number.NaN, "", "text", Symbol("s"), 10n, [], {}, () => 1],
  ...[new Date(0), new Map([["id", "user-1"]]), Object.create(null), hostile],
] as never[];

describe("arguments of the wrong type", () => {
  it("have a result from every method", async () => {
    const { client } = startClient({ baseUrl: edge.url });
    await client.ready();
    for (const value of anything) {
      expect(client.isEnabled(value)).toBe(false);
      expect(client.getString(value, value)).toBe(value);
      expect(client.getNumber(value, value)).toBe(value);
      expect(client.getInteger(value, value)).toBe(value);
      expect(client.getObject(value, value)).toBe(value);
      expect(client.details(value, value).value).toBe(value);
      expect(typeof (await client.setContext(value, { timeoutMs: 5_000 }))).toBe("boolean");
      client.on(value, value)();
      client.off(value, value);
    }
    for (const options of [undefined, null, {}, 5, "soon"] as never[]) {
      expect(await client.ready(options)).toBe(true);
      expect(await client.setContext({ id: "ada" }, options)).toBe(true);
    }
  });

  it.each([
    [
      "a getter that throws",
      {
        id: "ada",
        get plan() {
          return fail();
        },
      },
    ],
    ["a proxy that throws", hostile],
    ["a text", "ada"],
    ["a list", ["ada"]],
  ])("a context that is or has %s counts as empty, with one log line", async (_, context) => {
    edge.requests.length = 0;
    const { client, logged } = startClient({ baseUrl: edge.url, context: context as never });
    expect(await client.ready()).toBe(true);
    expect(edge.requests).toMatchObject([{ context: {} }]);
    expect(logged).toEqual(["Halyard: Invalid attributes are ignored."]);
  });
});

describe("options of the wrong type", () => {
  it.each(["baseUrl", "clientKey"] as const)(
    "(%s) make a client that answers fallbacks, and one line in the log",
    async (name) => {
      for (const value of anything) {
        const { client, logged } = startClient({ baseUrl: edge.url, clientKey, [name]: value });
        expect(await client.ready()).toBe(false);
        expect(client.isEnabled("checkout", true)).toBe(true);
        expect(logged).toEqual([expect.stringContaining(name)]);
      }
    },
  );

  it.each([
    ["logger", null],
    ["logger", 5],
    ["logger", { warn: fail, error: fail }],
    ["storage", 5],
    ["bootstrap", ["checkout"]],
    ["context", null],
  ])("(%s: %j) do not disturb the client", async (name, value) => {
    const onConsole = jest.spyOn(console, "warn").mockReturnValue();
    const options: Partial<ClientOptions> = { [name]: value };
    const { client } = startClient({ baseUrl: edge.url, ...options });
    expect(await client.ready()).toBe(true);
    expect(client.isEnabled("checkout")).toBe(true);
    expect(client.isEnabled("missing", true)).toBe(true);
    expect(onConsole).toHaveBeenCalledTimes(value === null && name === "logger" ? 1 : 0);
    onConsole.mockRestore();
  });
});
