import { assertTargeted, type ReadValues } from "../targeting/assert-targeted.ts";
import type { TargetedFlag } from "../targeting/targeted-flags.ts";
import type { Way } from "../targeting/ways-of-asking.ts";

/** Sends the context in the query, as Unleash's browser SDKs do. */
export const frontendApi: Way = {
  name: "frontend API",
  sends: "all",
  plan({ user_id, ...properties }, token) {
    const query = [
      `userId=${user_id}`,
      ...Object.entries(properties).map(([name, value]) => `properties[${name}]=${value}`),
    ];
    const path = `/api/frontend?${query.join("&")}`;
    return { method: "GET", path, headers: { Authorization: token } };
  },
};

/**
 * Verifies that a frontend API returns the right values of constant flags and rules. Unleash's rollouts use another
 * hash. Returns the mean size of a response.
 */
export function assertFrontendApi(
  url: string,
  { key, flags }: { key: string; flags: readonly TargetedFlag[] },
): Promise<number> {
  const settled = flags.filter(({ kind }) => kind !== "rollout");
  const readValues: ReadValues = (body) => {
    const { toggles } = JSON.parse(body) as { toggles: { name: string }[] };
    const on = new Set(toggles.map(({ name }) => name));
    return new Map(settled.map((flag) => [flag.key, on.has(flag.key)]));
  };
  return assertTargeted(url, { way: frontendApi, key, flags: settled, readValues });
}
