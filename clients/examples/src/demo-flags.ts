import type { Demo } from "./config.ts";

/** The flag that the examples turn on and off. */
export const flagKey = "new-checkout";

/** Half of the users see the new checkout in blue, the others in green. */
const color = {
  ...{ key: "checkout-color", name: "Color of the checkout", value_type: "string", enabled: true },
  variations: [
    { key: "blue", value: "royalblue" },
    { key: "green", value: "seagreen" },
  ],
  serve: {
    split: [
      { variation: "blue", weight: 50 },
      { variation: "green", weight: 50 },
    ],
  },
};

/** Creates the flags unless they exist, `new-checkout` off for all users. */
export async function provideFlags(demo: Demo): Promise<void> {
  for (const flag of [{ key: flagKey, name: "New checkout" }, color])
    if ((await findFlag(demo, flag.key)) === undefined) await manage(demo, "POST", "/flags", flag);
}

/** Turns the flag on or off in the environment of the demo keys. Returns whether it is on. */
export async function toggleFlag(demo: Demo): Promise<boolean> {
  await provideFlags(demo);
  const flag = await findFlag(demo, flagKey);
  const changed = await manage(demo, "PATCH", `/flags/${flag?.id}`, { enabled: !flag?.enabled });
  return (changed as Flag).enabled;
}

type Flag = { id: string; enabled: boolean };

async function findFlag(demo: Demo, key: string): Promise<Flag | undefined> {
  const found = await manage(demo, "GET", `/flags?key=${key}`);
  return (found as { flags: Flag[] }).flags[0];
}

/** @throws Error for an error response */
async function manage(
  { baseUrl, serverKey }: Demo,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
  const response = await fetch(`${baseUrl}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${serverKey}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok)
    throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response.json();
}
