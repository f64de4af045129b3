import type { TargetedFlag } from "../../targeting/targeted-flags.ts";
import type { User } from "../../targeting/users.ts";

/** A library that evaluates flags in its own process, told the flags and ready for the users. */
export type LoadLibrary = (
  flags: readonly TargetedFlag[],
  users: readonly User[],
) => Promise<Library>;

export type Library = {
  /** Evaluates all flags for one user; answers how many of them are on. */
  evaluateAll(user: number): number;
  /** Evaluates one flag for one user about whom nothing is known from before. */
  evaluateOne(user: number, flag: number): boolean;
};
