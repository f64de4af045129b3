import type { QueryClient, QueryKey } from "@tanstack/react-query";
import type { AuditedChange } from "../api/schema.d.ts";

/** Time over which changes are collected. A tab that was hidden receives up to 1,000 at once. */
const collectMs = 300;

/** Query keys of lists, by the beginning of the actions that change them. */
const lists: Readonly<Record<string, string>> = {
  key: "keys",
  webhook: "webhooks",
  schedule: "schedules",
};

/**
 * Marks the queries that depend on changes as stale, once for a burst of changes. Visible queries refetch immediately, the
 * others when their page opens. `refreshNames` reads the list of environments and the names in the session.
 */
export function createInvalidator(client: QueryClient, refreshNames: () => void) {
  const stale = new Map<string, QueryKey>();
  let areNamesStale = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function invalidate(): void {
    timer = undefined;
    for (const queryKey of stale.values()) void client.invalidateQueries({ queryKey });
    stale.clear();
    if (areNamesStale) refreshNames();
    areNamesStale = false;
  }

  function collect(keys: readonly QueryKey[]): void {
    for (const key of keys) stale.set(JSON.stringify(key), key);
    timer ??= setTimeout(invalidate, collectMs);
  }

  return {
    take(change: AuditedChange): void {
      areNamesStale ||= changesScope(change);
      collect(staleAfter(change));
    },
    takeFlag: (key: string) => collect([["flag", key]]),
    stop: () => clearTimeout(timer),
  };
}

/** Returns the query keys that depend on a change. */
function staleAfter({ action, change_type, flag_key }: AuditedChange): readonly QueryKey[] {
  const list = lists[action.split("_")[0] ?? ""];
  return [
    ["changes"],
    ...(list === undefined ? [] : [[list]]),
    ...(flag_key === null ? [] : [["flag", flag_key]]),
    // Flags have a state in every environment.
    ...(action.startsWith("environment_") ? [["flags"], ["flag"]] : []),
    ...(change_type === "scheduled" ? [["schedules"]] : []),
  ];
}

/** Returns whether a change alters the list of environments, the names or the end of the key in the session. */
const changesScope = ({ action }: AuditedChange): boolean =>
  ["environment_", "project_", "user_", "key_rotated"].some((start) => action.startsWith(start));
