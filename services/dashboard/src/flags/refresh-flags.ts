import type { QueryClient } from "@tanstack/react-query";
import type { Api } from "../api/client.ts";
import { invalidateList, isReadingList, putIntoList, readFlag } from "./flag-queries.ts";

/** Minimum number of changed flags for reading the whole list instead. */
const listFrom = 20;

/** Time after which the changed flags are read if the list is being read. */
const retryMs = 500;

/** Keeps the cached list of flags current: collects the flags that changed, and reads them instead of the list. */
export function createFlagRefresher(client: QueryClient, api: Api) {
  const changed = new Set<string>();
  let isWaiting = false;

  async function refresh(): Promise<void> {
    if (changed.size === 0) return undefined;
    // The response may be older than the changes, and would replace what is read now. To cancel it instead would mean
    // that a long list never arrives while somebody changes a flag each second.
    if (isReadingList(client)) return waitForList();
    const keys = [...changed];
    changed.clear();
    if (keys.length >= listFrom) return invalidateList(client);
    try {
      for (const key of keys) putIntoList(client, key, await readFlag(api, key));
    } catch {
      // The list shows the error, if reading it fails too.
      await invalidateList(client);
    }
  }

  function waitForList(): void {
    if (isWaiting) return;
    isWaiting = true;
    setTimeout(() => {
      isWaiting = false;
      void refresh();
    }, retryMs);
  }

  return {
    take: (key: string) => void changed.add(key),
    read: () => void refresh(),
  };
}
