import type { DirectoryKey } from "@halyard/api-keys";
import type { UpdateFlag } from "@halyard/contracts";
import { type Refusal, refuse } from "@halyard/service";
import { changedSettings } from "./decide-change.ts";
import type { Flag } from "./flag.ts";

/**
 * Restrictions of `environment_only` keys. Such a key creates flags, because a new flag is off in every other
 * environment. It changes states in its own environment, and nothing that other environments share.
 */
export function checkMayDelete(key: DirectoryKey): Refusal | undefined {
  if (!key.environmentOnly) return undefined;
  return refuse(
    "AUTH_002",
    "A key with environment_only may not delete a flag, because the flag exists in every environment.",
  );
}

/** A request that repeats the current name, description and type is allowed. */
export function checkMayChangeSettings(
  key: DirectoryKey,
  flag: Flag,
  request: UpdateFlag,
): Refusal | undefined {
  if (!key.environmentOnly) return undefined;
  const [name] = Object.keys(changedSettings(flag, request));
  if (name === undefined) return undefined;
  return refuse(
    "AUTH_002",
    `A key with environment_only may not change /${name}, because it applies to every environment.`,
  );
}
