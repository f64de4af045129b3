import type { DirectoryKey } from "@halyard/api-keys";
import type { UsageEndpoint } from "@halyard/contracts";
import type { Problem } from "@halyard/http";
import type { LimitMember } from "@halyard/rate-limit";
import type { KeyUses } from "../admission/limits.ts";

/**
 * Counts the use of keys, environments and flags, and applies the monthly limit of each organization, as one edge sees
 * it. Nothing is counted by user.
 */
export type Usage = KeyUses & {
  /**
   * Returns the problem of a request whose organization has used up its month. Records the use of the key in any case,
   * and counts nothing else.
   */
  check(key: DirectoryKey, nowMs: number): Problem | undefined;
  /** Rereads the limits of organizations that may have changed in the snapshot. */
  limitsChanged(organizationIds: Iterable<string>): void;
  /** Counts one admitted request. */
  count(key: DirectoryKey, endpoint: UsageEndpoint, nowMs: number): void;
  /** Counts a bulk response: an evaluation of each flag of the key's environment. */
  answeredAll(key: DirectoryKey, nowMs: number): void;
  /**
   * Counts an evaluation of one flag. `variation` is the key of a typed flag's variation; undefined for a boolean flag,
   * and for the caller's default.
   */
  answeredOne(key: DirectoryKey, flagId: string, nowMs: number, variation?: string): void;
  /**
   * Returns the month's members of the rate limit fields; undefined without a limit. Returns the same object while the
   * texts are the same.
   */
  member(key: DirectoryKey, nowMs: number): LimitMember | undefined;
};
