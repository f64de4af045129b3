import { describe, expect, it } from "@jest/globals";
import { acceptsGzip } from "../src/content-coding.ts";

describe("given Accept-Encoding", () => {
  it.each([
    ["br, gzip, deflate"],
    ["gzip, deflate, br"],
    ["GZIP"],
    ["gzip;q=0.5, br;q=1.0"],
    ["br;q=0.3,gzip ; q=0.2"],
  ])("uses gzip for %j", (header) => {
    expect(acceptsGzip(header)).toBe(true);
  });

  it.each<[string | undefined]>([
    [undefined],
    [""],
    ["*"],
    ["identity"],
    ["deflate"],
    ["br"],
    ["br, gzip;q=0"],
    ["gzip;q=x"],
    ["gzip;q=2"],
  ])("compresses nothing for %j", (header) => {
    expect(acceptsGzip(header)).toBe(false);
  });
});
