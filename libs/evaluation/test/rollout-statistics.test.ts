import { describe, expect, it } from "@jest/globals";
import { compile, createContext } from "../src/index.ts";
import { flagWithRollout, given } from "./flags.ts";

/** The users are the same in every run, so that the tests are deterministic. */
const users = Array.from({ length: 20_000 }, (_, index) => `user-${index}`);
const contexts = users.map((id) => createContext(given({ id })));

const insideOf = (key: string, percentage: number) => {
  const { evaluate } = compile(flagWithRollout(key, percentage));
  return contexts.map((context) => evaluate(context).value);
};
const count = (values: boolean[]) => values.filter(Boolean).length;

describe("given 20,000 users", () => {
  // Four standard deviations of a binomial distribution: exceeded by chance once in 16,000 times.
  it.each([1, 10, 33, 50])("includes %i percent, within statistical bounds", (percentage) => {
    const share = percentage / 100;
    const deviation = Math.sqrt(users.length * share * (1 - share));
    for (const key of ["checkout", "new-search", "a", "dark.mode_2"]) {
      const difference = Math.abs(count(insideOf(key, percentage)) - users.length * share);
      expect(difference).toBeLessThan(4 * deviation);
    }
  });

  it("includes no user at 0 and all users at 100 percent", () => {
    expect(count(insideOf("checkout", 0))).toBe(0);
    expect(count(insideOf("checkout", 100))).toBe(users.length);
  });

  it("selects the users of each flag independently of other flags", () => {
    const keys = ["checkout", "checkout2", "search", "flag-1", "flag-2", "flag-3"];
    const drawn = keys.map((key) => insideOf(key, 50));
    for (const [first, insideFirst] of drawn.entries()) {
      for (const insideSecond of drawn.slice(first + 1)) {
        // Chi-square statistic of the 2 × 2 table of "inside" and "outside", with one degree of freedom. By chance it
        // exceeds 15.1 once in 10,000 times.
        const both = count(insideFirst.map((isIn, user) => isIn && insideSecond[user] === true));
        const [inFirst, inSecond] = [count(insideFirst), count(insideSecond)];
        const n = users.length;
        const determinant = both * n - inFirst * inSecond;
        const chiSquare =
          (determinant * determinant * n) / (inFirst * (n - inFirst) * inSecond * (n - inSecond));
        expect(chiSquare).toBeLessThan(15.1);
      }
    }
  });

  it("keeps every included user when the percentage is raised", () => {
    const [at10, at11, at50] = [10, 11, 50].map((percentage) => insideOf("checkout", percentage));
    expect(at10?.every((isIn, user) => !isIn || at11?.[user] === true)).toBe(true);
    expect(at11?.every((isIn, user) => !isIn || at50?.[user] === true)).toBe(true);
  });
});
