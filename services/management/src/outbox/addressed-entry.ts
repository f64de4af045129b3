import type { EntryAddress, LiveEntry, Tombstone } from "@halyard/contracts";

/** An entry of the snapshot and its address. */
export type AddressedEntry = { address: EntryAddress; value: LiveEntry | Tombstone };
