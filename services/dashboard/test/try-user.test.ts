import { describe, expect, it } from "@jest/globals";
import type { FlagExplanation } from "../src/api/schema.d.ts";
import { reasonText, servedReason } from "../src/targeting/try-user.ts";

const explanation = (trace: Partial<FlagExplanation["trace"]>) =>
  ({
    reason: "split",
    value: true,
    variation: "blue",
    trace: { rules: [], ...trace },
  }) as unknown as FlagExplanation;

describe("the explanation of a user's value", () => {
  it("names whole buckets for a percentage with decimals", () => {
    const result = explanation({ split: { bucket: 109, percentage: 1.1 } });
    expect(reasonText(result, { ruleName: String, unit: "id" })).toBe(
      "The user's bucket is 109 of 0 to 9999. 1.1 % includes the buckets up to 109, so the user is inside.",
    );
  });

  it.each([
    [[[0, 10]], "which has the buckets 0 to 9."],
    [
      [
        [0, 10],
        [20, 30],
      ],
      "which has the buckets 0 to 9 and 1 more range.",
    ],
    [
      [
        [0, 10],
        [20, 30],
        [40, 50],
      ],
      "which has the buckets 0 to 9 and 2 more ranges.",
    ],
  ])("counts the other ranges of %j", (ranges, expected) => {
    const split = [{ variation: "blue", weight: 100, ranges }];
    expect(servedReason(explanation({ bucket: 3, serve: { split } }))).toContain(expected);
  });
});
