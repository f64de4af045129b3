import {
  addressBlock,
  createAdmission,
  createRateLimit,
  describeRate,
  type Rate,
} from "@halyard/rate-limit";
import type { Problem } from "@halyard/service";
import { keyProblems } from "./key-problems.ts";

/**
 * Rate limits per API key, and per address for invalid keys. Each process counts for itself, so several
 * replicas together admit more.
 */
export type KeyLimits = {
  /** Refuses a key that works but asks too often. */
  checkKey(key: { id: string }, nowMs: number): Problem | undefined;
  /**
   * What is answered to a key that does not work: that it is not valid, or, to an address that has sent
   * too many of these, that it is to wait. A key that works is never refused for what others sent from
   * its address: it was recognized before, and nobody guesses 32 random bytes.
   */
  rejectInvalidKey(address: string, nowMs: number): Problem;
  /**
   * Refuses an address that has sent too many wrong keys, and takes nothing into account of one that may
   * go on; for where it costs something to find out whether a key works.
   */
  checkAddress(address: string, nowMs: number): Problem | undefined;
};

export function createKeyLimits(rate: Rate): KeyLimits {
  const limit = `is ${describeRate(rate)}, in each process. The operator raises it with KEY_REQUESTS_PER_SECOND and KEY_REQUESTS_BURST.`;
  const admitKey = createAdmission(
    createRateLimit(rate),
    `Too many requests with this key. The limit of a key ${limit}`,
  );
  const addresses = createRateLimit(rate);
  const admitAddress = createAdmission(
    addresses,
    `Too many invalid keys from this address. The limit of an address ${limit}`,
  );
  return {
    checkKey: admitKey,
    rejectInvalidKey: (address, nowMs) =>
      admitAddress({ id: addressBlock(address) }, nowMs) ?? keyProblems.invalid,
    checkAddress(address, nowMs) {
      const id = addressBlock(address);
      return addresses.left(id, nowMs).requests > 0 ? undefined : admitAddress({ id }, nowMs);
    },
  };
}
