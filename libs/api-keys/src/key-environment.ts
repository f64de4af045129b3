import type { Problem } from "@halyard/http";
import { keyProblems } from "./key-limits.ts";
import type { DirectoryKey } from "./key-verification.ts";

/** Returns the problem of an `environment_only` key in another environment than its own. */
export function checkKeyEnvironment(key: DirectoryKey, environmentId: string): Problem | undefined {
  if (!key.environmentOnly || key.environmentId === environmentId) return undefined;
  return keyProblems.otherEnvironment;
}
