import { answerParent } from "../processes/answer-parent.ts";
import { targetedFlags } from "../targeting/targeted-flags.ts";
import { type User, userOf } from "../targeting/users.ts";
import { loadFlagd } from "./libraries/flagd.ts";
import { loadGrowthBook } from "./libraries/growthbook.ts";
import { loadHalyard } from "./libraries/halyard.ts";
import type { Library, LoadLibrary } from "./libraries/library.ts";
import { loadUnleash } from "./libraries/unleash.ts";
import type { LibraryName, LibraryQuestion } from "./measured-library.ts";

/** Runs one library in its own process, so that libraries do not affect each other. */
const loaders: Record<LibraryName, LoadLibrary> = {
  halyard: loadHalyard,
  "unleash-client": loadUnleash,
  "@openfeature/flagd-core": loadFlagd,
  "@growthbook/growthbook": loadGrowthBook,
};

/** Evaluations between two reads of the clock. */
const usersAtOnce = 200;

let library: Library;
let flags: number;
let users: number;
/** Position at the end of the previous run. */
let next = 0;
/** Returned to the parent, so that V8 cannot remove evaluations as unused. */
let on = 0;

answerParent<LibraryQuestion>({
  greeting: {},
  async answer(question) {
    switch (question.kind) {
      case "load":
        ({ flags, users } = question);
        library = await loaders[question.library](
          targetedFlags(flags, question.flagKinds),
          Array.from({ length: users }, (_, number) => asReceived(userOf(number))),
        );
        return {};
      case "values":
        return { values: allValues() };
      case "speed":
        return speed(question.way === "all" ? evaluateAll : evaluateOne, question.durationMs);
      case "allocation":
        return { bytes: allocation(question.way === "all" ? evaluateAll : evaluateOne) };
    }
  },
});

/** Copies a user, so that its strings are not identical to those in the rules, as in a request. */
function asReceived(user: User): User {
  return JSON.parse(JSON.stringify(user)) as User;
}

/** Returns one row for each user, with one digit for each flag's value. */
function allValues(): string[] {
  return Array.from({ length: users }, (_, user) =>
    Array.from({ length: flags }, (_, flag) => (library.evaluateOne(user, flag) ? 1 : 0)).join(""),
  );
}

/**
 * Measures CPU time per evaluation, of all threads. This includes garbage collection and excludes other
 * processes.
 */
function speed(evaluate: () => void, durationMs: number) {
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
}

/** Evaluates all flags for the next user. */
function evaluateAll(): void {
  on += library.evaluateAll(next % users);
  next += 1;
}

/** Evaluates each flag for another user. */
function evaluateOne(): void {
  for (let flag = 0; flag < flags; flag += 1) {
    if (library.evaluateOne(next % users, flag)) on += 1;
    next += 1;
  }
}

/** Number of users per measurement. It is low, so that all allocations fit into the young generation. */
const allocatingUsers = 100;

/**
 * Measures bytes per evaluation. The process is started so that no garbage is collected meanwhile.
 */
function allocation(evaluate: () => void): number {
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  for (let count = 0; count < allocatingUsers; count += 1) evaluate();
  const after = process.memoryUsage().heapUsed;
  return (after - before) / (allocatingUsers * flags);
}
