import type { QueryClient } from "@tanstack/react-query";
import type { Api } from "../api/client.ts";
import { cancelListReads, invalidateList, putIntoList, readFlag } from "./flag-queries.ts";

/** Time over which changes are collected, so that a burst causes few requests. */
const collectMs = 150;
/** Minimum number of changed flags for reading the whole list instead. */
const listFrom = 20;

/** Keeps the cached list of flags current: reads the flags that changed, instead of the list. */
export function createFlagRefresher(client: QueryClient, api: Api) {
  const changed = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;

  async function refresh(): Promise<void> {
    timer = undefined;
    const keys = [...changed];
    changed.clear();
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
    take(key: string): void {
      changed.add(key);
      timer ??= setTimeout(() => void refresh(), collectMs);
    },
    stop: () => clearTimeout(timer),
  };
}
