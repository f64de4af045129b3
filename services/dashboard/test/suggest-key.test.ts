import { describe, expect, it } from "@jest/globals";
import { suggestKey } from "../src/flags/flag-search.ts";

describe("the suggested key of a flag", () => {
  it.each([
    ["New checkout (EU)", "new-checkout-eu"],
    ["Größe", "groesse"],
    ["Gro\u0308ße", "groesse"],
    ["Café über alles", "cafe-ueber-alles"],
  ])("for %s is %s", (name, key) => {
    expect(suggestKey(name)).toBe(key);
  });
});
