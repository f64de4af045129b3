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
 * Creates the look-up of API keys. Normally the key directory in memory decides, as in every service. While the
 * directory does not follow the snapshot, because NATS is or was unavailable, the look-up reads the table instead. So
 * keys that are issued meanwhile work, and keys that are revoked meanwhile do not.
 *
 * The rate limit of the address applies before the query only if the directory does not contain the key. So an address
 * that sends many invalid keys cannot overload the database, and does not affect known keys at the same address.
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
