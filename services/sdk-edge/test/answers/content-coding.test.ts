import { describe, expect, it } from "@jest/globals";
import { chooseCoding } from "../../src/answers/content-coding.ts";

describe("given Accept-Encoding", () => {
  it.each([
    ["br, gzip, deflate", "br"],
    ["gzip, deflate, br", "br"],
    ["gzip, deflate", "gzip"],
    ["GZIP", "gzip"],
    ["gzip;q=1.0, br;q=0.5", "gzip"],
    ["gzip ; q=0.2,br ; q=0.3", "br"],
  ])("chooses a coding for %j", (header, coding) => {
    expect(chooseCoding(header)).toBe(coding);
  });

  it.each([[undefined], [""], ["*"], ["identity"], ["deflate"], ["br;q=0, gzip;q=0"], ["br;q=x"]])(
    "compresses nothing for %j",
    (header) => {
      expect(chooseCoding(header)).toBeUndefined();
    },
  );
});
