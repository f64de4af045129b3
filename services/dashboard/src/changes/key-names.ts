import type { KeySession } from "../session/session.tsx";
import { useKeyQuery } from "../session/use-key-query.ts";
import { readChanges } from "./read-changes.ts";

/** Entries that names are searched in. A key without one is shown by its id. */
const maxEntries = 1_000;

/**
 * Reads the names of the project's keys by their ids, also of revoked ones. The audit log has them all, while the list
 * of keys has only those of one environment, and for most people only their own.
 */
export async function readKeyNames(
  session: KeySession,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const actions = ["key_issued", "key_rotated"] as const;
  const pages = await Promise.all(
    actions.map((action) => readChanges(session, { action, limit: maxEntries }, signal)),
  );
  return new Map(
    pages.flatMap(({ changes }) =>
      changes.flatMap(({ key_id: id, after }) =>
        [id, after?.replaced_by]
          .filter((key) => typeof key === "string")
          .map((key) => [key, String(after?.name)] as const),
      ),
    ),
  );
}

/** The names change with the keys. */
export const useKeyNames = (): ReadonlyMap<string, string> | undefined =>
  useKeyQuery(["keys", "names"], readKeyNames).data;
