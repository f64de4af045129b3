import { expect, it } from "@jest/globals";
import { countsText } from "../src/ui/numbers.ts";

it("lists counts by key", () => {
  expect(countsText([])).toBe("");
  expect(
    countsText([
      { key: "blue", evaluations: 610 },
      { key: "red", evaluations: 590 },
    ]),
  ).toBe("blue 610, red 590");
});
