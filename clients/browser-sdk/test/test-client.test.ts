import { afterEach, describe, expect, it, jest } from "@jest/globals";
import { createTestClient } from "../src/test-client.ts";

const small = { value: { seats: 5 }, variation: "small" };

afterEach(() => void jest.restoreAllMocks());

describe("given a test client with values", () => {
  const create = () => createTestClient({ checkout: true, color: "blue", limits: small });

  it("returns them, and is current", async () => {
    const client = create();
    expect(await client.ready()).toBe(true);
    expect(client.isEnabled("checkout")).toBe(true);
    expect(client.details("color", "red")).toEqual({ value: "blue", variation: "blue" });
    expect(client.getObject("limits", {})).toEqual({ seats: 5 });
  });

  it("sets a value of any type, and calls the listeners if it differs", () => {
    const client = create();
    const changed: string[] = [];
    client.on("change", ({ keys }) => void changed.push(...keys));
    client.set("color", "red");
    client.set("checkout", true);
    client.set("limits", structuredClone(small));
    expect(changed).toEqual(["color"]);
    expect(client.getString("color", "")).toBe("red");
  });

  it("ignores an object without its variation, with a warning", () => {
    const warned = jest.spyOn(console, "warn").mockReturnValue();
    const client = create();
    client.set("limits", { seats: 6 } as never);
    expect(client.allValues().limits).toEqual(small);
    expect(warned).toHaveBeenCalledTimes(1);
  });

  it("restores the initial values", () => {
    const client = create();
    client.set("checkout", false);
    client.reset();
    expect(client.allFlags()).toEqual({ checkout: true });
  });

  it("warns of a flag that is read as another type, and not of flags that the test has not set", () => {
    const warned = jest.spyOn(console, "warn").mockReturnValue();
    const client = create();
    client.isEnabled("missing");
    client.isEnabled("color");
    expect(warned.mock.calls).toEqual([
      ['Halyard: Flag "color" has the type string; the fallback applies.'],
    ]);
  });
});
