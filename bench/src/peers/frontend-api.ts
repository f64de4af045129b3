import type { Value } from "../targeting/assert-targeted.ts";
import { type AnyFlag, colorOtherwise } from "../targeting/targeted-flags.ts";
import type { Way } from "../targeting/ways-of-asking.ts";
import { assertPeer } from "./assert-peer.ts";

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

/** Verifies the values of a frontend API. Returns the mean size of a response. */
export function assertFrontendApi(
  url: string,
  { key, flags }: { key: string; flags: readonly AnyFlag[] },
): Promise<number> {
  return assertPeer(url, { way: frontendApi, key, flags, readValues });

  function readValues(body: string): Map<string, Value> {
    const { toggles } = JSON.parse(body) as { toggles: Toggle[] };
    const on = new Map(toggles.map(({ name, variant }) => [name, variant.payload?.value ?? true]));
    return new Map(flags.map((flag) => [flag.key, on.get(flag.key) ?? offValue(flag)]));
  }
}

type Toggle = { name: string; variant: { payload?: { value: string } } };

const offValue = ({ kind }: AnyFlag) => (kind === "split" ? colorOtherwise : false);
