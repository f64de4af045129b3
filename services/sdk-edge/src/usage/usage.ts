import type { DirectoryKey } from "@halyard/api-keys";
import type { UsageEndpoint } from "@halyard/contracts";
import type { LimitMember } from "@halyard/rate-limit";
import type { Problem } from "@halyard/service";

/**
 * What an organization uses of its month, as far as one edge sees it. Nothing here is about users:
 * keys, environments and flags are counted.
 */
export type Usage = {
  /** Somebody asks with the key and is refused without a `check`. */
  used(key: DirectoryKey, nowMs: number): void;
  /**
   * Refuses a request whose organization has used up its month. The key is used, whatever becomes of the
   * request; nothing else is counted yet.
   */
  check(key: DirectoryKey, nowMs: number): Problem | undefined;
  /** Takes the organizations whose limits may have changed in the snapshot. */
  limitsChanged(organizationIds: Iterable<string>): void;
  /** Counts one request that was admitted. */
  count(key: DirectoryKey, endpoint: UsageEndpoint, nowMs: number): void;
  /** All flags of the key's environment were evaluated for one answer. */
  answeredAll(key: DirectoryKey, nowMs: number): void;
  /** One flag was evaluated by itself. */
  answeredOne(key: DirectoryKey, flagId: string, nowMs: number): void;
  /** Returns the month's members of the rate limit fields, the same object for the same texts; undefined without a limit. */
  member(key: DirectoryKey, nowMs: number): LimitMember | undefined;
};
