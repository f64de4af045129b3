import {
  createKeyDirectory,
  everyEntryIsGenuine,
  type KeyDirectory,
  parseApiKey,
} from "@halyard/api-keys";
import type { Sql } from "@halyard/postgres";
import type { FindKey } from "../access/principal.ts";
import { keyEntry } from "./key.ts";
import { findUnrevokedKey } from "./key-store.ts";

/**
 * Who is asking is answered from the directory in memory, as on every service. Only while the
 * directory does not follow the snapshot (NATS is away, or was never there yet) is the table asked,
 * so that management goes on by its own truth: keys issued meanwhile work, revoked ones do not. An
 * address that floods it with keys that nobody knows is refused before; a key that the directory knows
 * is not hindered by others at its address.
 */
export function createKeyLookup(options: {
  sql: Sql;
  directory: KeyDirectory;
  directoryIsCurrent: () => boolean;
}): FindKey {
  const { sql, directory } = options;
  return async (text, nowMs, checkCaller) => {
    const known = directory.verify(text, nowMs);
    if (options.directoryIsCurrent()) return known;
    const parsed = parseApiKey(text);
    if (parsed === undefined) return undefined;
    const problem = known === undefined ? checkCaller() : undefined;
    if (problem !== undefined) return problem;
    const key = await findUnrevokedKey(sql, parsed.id);
    if (key === undefined) return undefined;
    const { value } = keyEntry({ ...key, committedAt: key.createdAt });
    const momentary = createKeyDirectory(everyEntryIsGenuine);
    momentary.put(parsed.id, value);
    return momentary.verify(text, nowMs);
  };
}
