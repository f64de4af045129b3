import type { KeyObject } from "node:crypto";
import type { CompleteEntry } from "@halyard/contracts";
import { publicKeysById, throttleLog } from "@halyard/jetstream";
import type { Logger } from "pino";
import { Counter, type Registry } from "prom-client";
import { completeAt, hasValidSignature } from "./entry-signature.ts";

/** Verifies the signatures of entries in the snapshot. */
export type KeySignatures = {
  /** Returns whether this process can verify the entries of a signer. The signer of unsigned entries is undefined. */
  trusts(signer: string | undefined): boolean;
  /** Verifies the signature of the entry with this key in the bucket. */
  isGenuine(
    entryKey: string,
    entry: Readonly<Record<string, unknown>> & { signature?: string | undefined },
  ): boolean;
  /** Verifies the signature of the entry `complete` at this sequence of the stream. */
  isGenuineComplete(entry: CompleteEntry, sequence: number): boolean;
};

/** For entries that do not come from the snapshot, and for development without signing keys. */
export const everyEntryIsGenuine: KeySignatures = {
  trusts: () => true,
  isGenuine: () => true,
  isGenuineComplete: () => true,
};

/** Verifies signatures with these public keys. Without public keys, every entry is accepted and a warning is logged. */
export function createKeySignatures(options: {
  publicKeys: readonly KeyObject[] | undefined;
  metrics: Registry;
  logger: Logger;
}): KeySignatures {
  const { publicKeys = [], metrics, logger } = options;
  const rejected = new Counter({
    name: "halyard_snapshot_signatures_rejected_total",
    help: "Entries of API keys and plans, and deletions, in the snapshot whose signature is missing or invalid.",
    registers: [metrics],
  });
  if (publicKeys.length === 0) {
    logger.warn(
      "SIGNING_PUBLIC_KEYS is not set: every client that can write to NATS can create valid API keys",
    );
    return everyEntryIsGenuine;
  }
  const bySigner = publicKeysById(publicKeys);
  const log = throttleLog<{ entry: string }>((fields) =>
    logger.error(
      fields,
      "the entry of an API key or of the plans, or a deletion, has no valid signature and was rejected",
    ),
  );

  function report(entry: string): void {
    rejected.inc();
    log({ entry });
  }

  return {
    trusts: (signer) => signer !== undefined && bySigner.has(signer),
    isGenuine(entryKey, entry) {
      const isGenuine = hasValidSignature(entryKey, entry, bySigner);
      if (!isGenuine) report(entryKey);
      return isGenuine;
    },
    isGenuineComplete: (entry, sequence) =>
      hasValidSignature(completeAt(sequence), entry, bySigner),
  };
}
