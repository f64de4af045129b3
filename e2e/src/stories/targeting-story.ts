import { isDeepStrictEqual } from "node:util";
import { call, eventually } from "@halyard/testing";
import type { System } from "../system/system.ts";
import { createTenant, must } from "../system/tenancy.ts";

/** A project with an audience with conditions and a list, a requirement, and a typed flag. */
export type TargetingStory = {
  /** Changes all of them. */
  change(): Promise<void>;
  /** Waits until every edge serves the values of the project as it was created, or as it was changed. */
  awaitServed(state: "created" | "changed"): Promise<void>;
};

const users = {
  member: { id: "tester-1" },
  german: { id: "someone", country: "DE" },
  other: { id: "tester-2", country: "FR" },
};
const matchOf = (country: string) => [
  [{ attribute: "country", operator: "equals", value: country }],
];

/** The flags that are on for each user, and the served color. */
const served = {
  created: {
    member: ["for-beta", "payments", "blue"],
    german: ["for-beta", "payments", "blue"],
    other: ["payments", "blue"],
  },
  changed: {
    member: ["payments", "without-payments", "navy"],
    german: ["payments", "without-payments", "navy"],
    other: ["for-beta", "payments", "without-payments", "navy"],
  },
};

export async function beginTargetingStory(system: System): Promise<TargetingStory> {
  const [management] = system.managements;
  const url = `${management?.url}/api/v1`;
  const { serverKey: key, clientKey } = await createTenant(management?.url ?? "", {
    name: "Targeting",
  });
  const send = (method: string, path: string, body: object) =>
    must(`${url}${path}`, { method, key, body });
  const createFlag = async (flagKey: string, settings: object = {}) =>
    (await send("POST", "/flags", { key: flagKey, name: flagKey, enabled: true, ...settings })).id;
  const replaceList = (member: string) =>
    must(`${url}/audiences/beta/list`, {
      ...{ method: "PUT", key, headers: { "content-type": "text/csv" }, text: `${member}\n` },
    });

  await send("POST", "/audiences", { key: "beta", name: "Beta", match: matchOf("DE") });
  await replaceList(users.member.id);
  await createFlag("payments");
  await createFlag("for-beta", { targeting_rules: [{ conditions: [{ audience: "beta" }] }] });
  const dependentId = await createFlag("without-payments", {
    requires: [{ flag: "payments", is: "off" }],
  });
  const variationsOf = (value: string) => ({ variations: [{ key: "only", value }] });
  const colorId = await createFlag("color", { value_type: "string", ...variationsOf("blue") });

  /** Returns the keys of the flags that are on for a user, and the text of the typed flag. */
  async function valuesAt(edgeUrl: string, user: object): Promise<string[]> {
    const headers = { "x-user-context": JSON.stringify(user) };
    const { body } = await call(`${edgeUrl}/api/v1/sdk/values`, { key: clientKey, headers });
    const { color, ...booleans } = body.values as Record<string, { value: unknown }>;
    const areOn = Object.keys(booleans).filter((flagKey) => booleans[flagKey]?.value === true);
    return [...areOn, String(color?.value)];
  }

  return {
    async change() {
      await replaceList(users.other.id);
      await send("PATCH", "/audiences/beta", { match: matchOf("AT") });
      await send("PATCH", `/flags/${dependentId}`, { requires: [] });
      await send("PATCH", `/flags/${colorId}`, variationsOf("navy"));
    },
    async awaitServed(state) {
      for (const edge of system.edges)
        for (const [name, user] of Object.entries(users))
          await eventually(() => valuesAt(edge.url, user), {
            because: `${edge.name} serves the ${state} values to the user ${name}`,
            until: (values) => isDeepStrictEqual(values, served[state][name as keyof typeof users]),
          });
    },
  };
}
