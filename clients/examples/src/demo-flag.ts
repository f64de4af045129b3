import type { Demo } from "./config.ts";

/** The flag of the examples. */
export const flagKey = "new-checkout";

/** Creates the flag, off for all users, unless it exists. */
export async function provideFlag(demo: Demo): Promise<void> {
  if ((await findFlag(demo)) !== undefined) return;
  await manage(demo, "POST", "/flags", { key: flagKey, name: "New checkout" });
}

/** Turns the flag on or off in the environment of the demo keys. Returns whether it is on. */
export async function toggleFlag(demo: Demo): Promise<boolean> {
  await provideFlag(demo);
  const flag = await findFlag(demo);
  const changed = await manage(demo, "PATCH", `/flags/${flag?.id}`, { enabled: !flag?.enabled });
  return (changed as Flag).enabled;
}

type Flag = { id: string; enabled: boolean };

async function findFlag(demo: Demo): Promise<Flag | undefined> {
  const found = await manage(demo, "GET", `/flags?key=${flagKey}`);
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
