import { describe, expect, it } from "@jest/globals";
import { createKeptAnswersBudget } from "../../src/environment/kept-answers.ts";

const answer = "x".repeat(10);
const keep = (place: ReturnType<typeof open>, ...tags: string[]) => {
  for (const tag of tags) place.keep(tag, answer, answer.length);
};
const open = (budget: ReturnType<typeof createKeptAnswersBudget>) => budget.open<string>();

describe("given one environment", () => {
  it("gives back what it kept, by the tag", () => {
    const place = open(createKeptAnswersBudget());
    keep(place, "a");
    expect(place.get("a")).toBe(answer);
    expect(place.get("b")).toBeUndefined();
  });

  it("keeps the first answers that fit, and each once", () => {
    const budget = createKeptAnswersBudget({ mostEach: 25 });
    const place = open(budget);
    keep(place, "a", "a", "b", "c");
    expect(["a", "b", "c"].map((tag) => place.get(tag))).toEqual([answer, answer, undefined]);
    expect(budget.characters).toBe(20);
  });

  it("has room again when it was cleared", () => {
    const budget = createKeptAnswersBudget({ mostEach: 25 });
    const place = open(budget);
    keep(place, "a", "b");
    place.clear();
    expect(budget.characters).toBe(0);
    keep(place, "c", "d");
    expect(["a", "b", "c", "d"].map((tag) => place.get(tag))).toEqual([
      undefined,
      undefined,
      answer,
      answer,
    ]);
  });
});

describe("given many environments", () => {
  it("keeps no more than the budget, and forgets those that began first", () => {
    const budget = createKeptAnswersBudget({ most: 100, mostEach: 30 });
    const places = Array.from({ length: 1_000 }, () => open(budget));
    for (const place of places) {
      keep(place, "a", "b", "c", "d");
      expect(budget.characters).toBeLessThanOrEqual(100);
    }
    const holding = places.filter((place) => place.get("a") !== undefined);
    expect(holding).toEqual(places.slice(-holding.length));
    expect(holding.length).toBeGreaterThanOrEqual(3);
  });

  it("lets a forgotten one begin anew", () => {
    const budget = createKeptAnswersBudget({ most: 20, mostEach: 20 });
    const [one, other] = [open(budget), open(budget)];
    keep(one, "a", "b");
    keep(other, "a");
    expect(one.get("a")).toBeUndefined();
    keep(one, "c");
    expect(one.get("c")).toBe(answer);
    expect(budget.characters).toBe(20);
  });
});
