import { answerParent } from "../processes/answer-parent.ts";
import { targetedFlags } from "../targeting/targeted-flags.ts";
import { type User, userOf } from "../targeting/users.ts";
import { loadFlagd } from "./libraries/flagd.ts";
import { loadGrowthBook } from "./libraries/growthbook.ts";
import { loadHalyard } from "./libraries/halyard.ts";
import type { Library, LoadLibrary } from "./libraries/library.ts";
import { loadUnleash } from "./libraries/unleash.ts";
import type { LibraryName, LibraryQuestion } from "./measured-library.ts";

/** One library in a process of its own, so that no other's code or garbage is in its way. */
const loaders: Record<LibraryName, LoadLibrary> = {
  halyard: loadHalyard,
  "unleash-client": loadUnleash,
  "@openfeature/flagd-core": loadFlagd,
  "@growthbook/growthbook": loadGrowthBook,
};

/** Between two looks at the clock. */
const usersAtOnce = 200;

let library: Library;
let flags: number;
let users: number;
/** Where the run before has ended. */
let next = 0;
/** Counted and handed back, so that no evaluation is left out as unused. */
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

/** Strings as they come out of a request's JSON, not the same ones that the rules hold. */
function asReceived(user: User): User {
  return JSON.parse(JSON.stringify(user)) as User;
}

/** Of each user, each flag's value as one digit. */
function allValues(): string[] {
  return Array.from({ length: users }, (_, user) =>
    Array.from({ length: flags }, (_, flag) => (library.evaluateOne(user, flag) ? 1 : 0)).join(""),
  );
}

/**
 * CPU time an evaluation, of all of the process's threads, so that collecting garbage counts, whoever
 * does it, and what else the machine does in the meantime does not.
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

/** All flags for the next user, told once. */
function evaluateAll(): void {
  on += library.evaluateAll(next % users);
  next += 1;
}

/** As many evaluations, each for another user. */
function evaluateOne(): void {
  for (let flag = 0; flag < flags; flag += 1) {
    if (library.evaluateOne(next % users, flag)) on += 1;
    next += 1;
  }
}

/** Few enough that all they allocate fits into the young generation at once. */
const allocatingUsers = 100;

/** Bytes an evaluation. The process was started so that no garbage is collected in between. */
function allocation(evaluate: () => void): number {
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  for (let count = 0; count < allocatingUsers; count += 1) evaluate();
  const after = process.memoryUsage().heapUsed;
  return (after - before) / (allocatingUsers * flags);
}
