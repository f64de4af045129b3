import { splitBucketOf } from "@halyard/evaluation";
import type { Client } from "@halyard/server-sdk";
import { eventually } from "@halyard/testing";
import { expect, it } from "@jest/globals";
import type { System } from "../../src/system/system.ts";
import { must, type Tenant } from "../../src/system/tenancy.ts";

type Given = { system: System; tenant: Tenant; client: Client };

const users = Array.from({ length: 2_000 }, (_, index) => ({ id: `user-${index}` }));

/** Flags with texts, numbers and objects, from the management service to a client. */
export function describeTypedFlags(given: () => Given): void {
  const manage = (method: string, path: string, body: object) => {
    const { system, tenant } = given();
    return must(`${system.managements[0]?.url}/api/v1${path}`, {
      ...{ method, key: tenant.serverKey, body },
    });
  };
  const create = (key: string, value_type: string, settings: object) =>
    manage("POST", "/flags", { key, name: key, value_type, enabled: true, ...settings });
  const arrival = (key: string) =>
    eventually(() => given().client.explain(key), { until: (found) => found !== undefined });

  it.each([0.1, 1e-21, 5e-324, 2 ** 53 - 1, -12.5])(
    "the number %d stays the same",
    async (value) => {
      const key = `number-${value}`.replaceAll(/[^a-z0-9-]/g, "-");
      await create(key, "number", { variations: [{ key: "only", value }] });
      await arrival(key);
      expect(given().client.getNumberDetails(key, null, 7)).toEqual({
        ...{ value, variation: "only", reason: "static" },
      });
    },
  );

  it("an object keeps its members, their order, and hostile names", async () => {
    const text = '{"b":[1,{"c":"ü"}],"__proto__":{"admin":true},"a":null}';
    await create("layout", "object", { variations: [{ key: "only", value: JSON.parse(text) }] });
    await arrival("layout");
    expect(JSON.stringify(given().client.getObject("layout", null, null))).toBe(text);
  });

  it("a changed split moves exactly the users of the difference", async () => {
    const { client } = given();
    const variations = ["blue", "red"].map((key) => ({ key, value: `the color ${key}` }));
    const split = (blue: number) => ({
      serve: { split: [blue, 100 - blue].map((weight, at) => ({ ...keyAt(at), weight })) },
    });
    const keyAt = (index: number) => ({ variation: variations[index]?.key });
    const { id } = await create("color", "string", { variations, ...split(50) });
    await arrival("color");
    const colors = () => users.map((user) => client.getString("color", user, "none"));
    const before = colors();
    const changed = new Promise((resolve) => {
      client.on("change", ({ keys }) => keys.includes("color") && resolve(keys));
    });
    await manage("PATCH", `/flags/${id}`, split(60));
    await changed;
    // Red keeps its lowest buckets, from 5,000 up to its new weight.
    const after = users.map(({ id: user }, at) =>
      splitBucketOf("color", user) < 9_000 ? before[at] : "the color blue",
    );
    expect(colors()).toEqual(after);
    expect(after).not.toEqual(before);
  });
}
