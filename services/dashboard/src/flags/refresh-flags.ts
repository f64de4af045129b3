import type { QueryClient } from "@tanstack/react-query";
import type { Api } from "../api/client.ts";
import { cancelListReads, invalidateList, putIntoList, readFlag } from "./flag-queries.ts";

/** Minimum number of changed flags for reading the whole list instead. */
const listFrom = 20;

/** Keeps the cached list of flags current: collects the flags that changed, and reads them instead of the list. */
export function createFlagRefresher(client: QueryClient, api: Api) {
  const changed = new Set<string>();

  async function refresh(): Promise<void> {
    const keys = [...changed];
    changed.clear();
    if (keys.length === 0) return;
    // A read of the list that began before the change would replace the newer state.
    if (await cancelListReads(client)) return invalidateList(client);
    if (keys.length >= listFrom) return invalidateList(client);
    try {
      for (const key of keys) putIntoList(client, key, await readFlag(api, key));
    } catch {
      // The list shows the error, if reading it fails too.
      await invalidateList(client);
    }
  }

  return {
    take: (key: string) => void changed.add(key),
    read: () => void refresh(),
  };
}
