import type { TargetedFlag } from "../../targeting/targeted-flags.ts";
import type { User } from "../../targeting/users.ts";

/** A library with loaded flags and users. */
export type LoadLibrary = (
  flags: readonly TargetedFlag[],
  users: readonly User[],
) => Promise<Library>;

export type Library = {
  /** Evaluates all flags for one user and returns how many are on. */
  evaluateAll(user: number): number;
  /** Evaluates one flag for a user without a prepared context. */
  evaluateOne(user: number, flag: number): boolean;
};
