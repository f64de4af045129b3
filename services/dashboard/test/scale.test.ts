import { expect, it } from "@jest/globals";
import { scaleTo } from "../src/usage/scale.ts";

it.each([
  [0, [0, 1]],
  [1, [0, 1]],
  [3, [0, 1, 2, 3]],
  [7, [0, 2, 4, 6, 8]],
  [100, [0, 50, 100]],
  [1_000_001, [0, 500_000, 1_000_000, 1_500_000]],
])("the axis of a chart to %p has labels at round numbers", (highest, labels) => {
  expect(scaleTo(highest)).toEqual(labels);
});
