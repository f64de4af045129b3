import { describe, expect, it } from "@jest/globals";
import { findResults } from "../src/search/find-results.ts";
import { flag } from "./listed-flag.ts";

const pages = [
  { to: "/flags", label: "Flags" },
  { to: "/history", label: "History" },
] as const;
const flags = [
  flag("a-checkout", { name: "One" }),
  flag("checkout-old", { archived_at: "2027-01-01T00:00:00.000Z" }),
  flag("checkout-v2", { tags: ["beta"] }),
  flag("prices", { tags: ["checkout"], name: "Prices" }),
];
const titles = (text: string) => findResults(text, pages, flags).map(({ title }) => title);

describe("the search over flags and pages", () => {
  it("finds keys, names and tags, with the best matches first and archived flags last", () => {
    expect(titles("checkout")).toEqual(["checkout-v2", "a-checkout", "prices", "checkout-old"]);
    expect(titles("ONE")).toEqual(["a-checkout"]);
  });

  it("needs all words", () => {
    expect(titles("beta checkout")).toEqual(["checkout-v2"]);
    expect(titles("beta prices")).toEqual([]);
  });

  it("finds pages, and lists all of them before a text is typed", () => {
    expect(titles("hist")).toEqual(["History"]);
    expect(titles("").slice(0, 3)).toEqual(["Flags", "History", "a-checkout"]);
  });

  it("shows a bounded number of results", () => {
    const many = Array.from({ length: 5_000 }, (_, index) => flag(`flag-${index}`));
    expect(findResults("flag", [], many)).toHaveLength(20);
  });
});
