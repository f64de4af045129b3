import type { EntryAddress, LiveEntry } from "@halyard/contracts";

/** A live entry of the snapshot and where it stands. */
export type AddressedEntry = { address: EntryAddress; value: LiveEntry };
