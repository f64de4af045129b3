import { answerParent } from "../processes/answer-parent.ts";
import { type FlagKind, targetedFlags, type User, userOf } from "../targeting/targeted-flags.ts";
import { type Library, type LibraryName, loaders } from "./libraries.ts";

/** Runs one library in its own process, so that libraries do not affect each other. */

/** `all` evaluates all flags for each user; `one` uses another user for each evaluation. */
export type Way = "all" | "one";
type Contents = { flagKinds: readonly FlagKind[]; flags: number; users: number };
/** Evaluations between two reads of the clock. */
const usersAtOnce = 200;
/** Number of users per measurement. It is low, so that all allocations fit into the young generation. */
const allocatingUsers = 100;
let library: Library;
let flags: number;
let users: number;
/** Position at the end of the previous run. */
let next = 0;
/** Returned to the parent, so that V8 cannot remove evaluations as unused. */
let on = 0;

const evaluations: Record<Way, () => void> = {
  all() {
    on += library.evaluateAll(next % users);
    next += 1;
  },
  one() {
    for (let flag = 0; flag < flags; flag += 1) {
      if (library.evaluateOne(next % users, flag)) on += 1;
      next += 1;
    }
  },
};

const api = {
  async load(name: LibraryName, contents: Contents) {
    ({ flags, users } = contents);
    // Copied users have strings that are not identical to those in the rules, as in a request.
    const asReceived = Array.from({ length: users }, (_, number) => userOf(number));
    const copies = JSON.parse(JSON.stringify(asReceived)) as User[];
    library = await loaders[name](targetedFlags(flags, contents.flagKinds), copies);
  },

  /** Returns one row for each user, with one digit for each flag's value. */
  values: (): string[] =>
    Array.from({ length: users }, (_, user) =>
      Array.from({ length: flags }, (_, flag) => (library.evaluateOne(user, flag) ? 1 : 0)).join(
        "",
      ),
    ),

  /**
   * Measures CPU time per evaluation, of all threads. This includes garbage collection and excludes other processes.
   */
  speed(way: Way, durationMs: number) {
    const evaluate = evaluations[way];
    const before = process.cpuUsage();
    let rounds = 0;
    let usedMicroseconds = 0;
    do {
      for (let count = 0; count < usersAtOnce; count += 1) evaluate();
      rounds += usersAtOnce;
      const { user, system } = process.cpuUsage(before);
      usedMicroseconds = user + system;
    } while (usedMicroseconds < durationMs * 1e3);
    return { nanoseconds: (usedMicroseconds * 1e3) / (rounds * flags), on };
  },

  /** Measures bytes per evaluation. The process is started so that no garbage is collected meanwhile. */
  allocation(way: Way): number {
    const evaluate = evaluations[way];
    globalThis.gc?.();
    const before = process.memoryUsage().heapUsed;
    for (let count = 0; count < allocatingUsers; count += 1) evaluate();
    return (process.memoryUsage().heapUsed - before) / (allocatingUsers * flags);
  },
};
export type LibraryApi = typeof api;
answerParent(api);
