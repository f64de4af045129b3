import type { QueryClient, QueryKey } from "@tanstack/react-query";
import type { AuditedChange } from "../api/schema.d.ts";

/** Query keys of lists, by the beginning of the actions that change them. */
const lists: Readonly<Record<string, string>> = {
  audience: "audiences",
  key: "keys",
  webhook: "webhooks",
  schedule: "schedules",
  user: "organization",
  change: "change-requests",
};

/**
 * Collects the queries that depend on changes. `read` marks them as stale, each once: visible queries refetch
 * immediately, the others when their page opens. `refreshNames` reads the list of environments and the names in the
 * session.
 */
export function createInvalidator(client: QueryClient, refreshNames: () => void) {
  const stale = new Map<string, QueryKey>();
  let areNamesStale = false;
  const takeQuery = (key: QueryKey) => void stale.set(JSON.stringify(key), key);
  return {
    takeQuery,
    take(change: AuditedChange): void {
      areNamesStale ||= changesScope(change);
      for (const key of staleAfter(change)) takeQuery(key);
    },
    takeAll(): void {
      areNamesStale = true;
      takeQuery([]);
    },
    read(): void {
      for (const queryKey of stale.values()) void client.invalidateQueries({ queryKey });
      stale.clear();
      if (areNamesStale) refreshNames();
      areNamesStale = false;
    },
  };
}

/** Returns the query keys that depend on a change. */
function staleAfter({ action, change_type, flag_key }: AuditedChange): readonly QueryKey[] {
  const list = lists[action.split("_")[0] ?? ""];
  return [
    ["changes"],
    ...(list === undefined ? [] : [[list]]),
    // A change of a flag can add or remove requirements of others.
    ...(flag_key === null ? [] : [["flag", flag_key], ["dependents"]]),
    // These changes can make a change request stale that is based on the values before.
    ...(/^(?:state|settings|deleted|audience_|environment_)/.test(action)
      ? [["change-requests"]]
      : []),
    // Flags have a state in every environment.
    ...(action.startsWith("environment_") ? [["flags"], ["flag"]] : []),
    ...(change_type === "scheduled" ? [["schedules"]] : []),
  ];
}

/** Returns whether a change alters the list of environments, the names or the end of the key in the session. */
const changesScope = ({ action }: AuditedChange): boolean =>
  ["environment_", "project_", "user_", "key_rotated"].some((start) => action.startsWith(start));
