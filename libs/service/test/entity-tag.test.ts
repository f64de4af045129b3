import { describe, expect, it } from "@jest/globals";
import { namesTag } from "../src/index.ts";

const etag = '"HgaVDNL2-_58R6eQoVeMae"';

describe("given the header If-None-Match", () => {
  it.each([
    ["the tag", etag, true],
    ["the tag, marked as weak by a proxy", `W/${etag}`, true],
    ["a list with it", `"a", W/${etag} ,"b"`, true],
    ["a list without spaces", `"a",${etag}`, true],
    ["any tag", "*", true],
    ["any tag, with spaces", " * ", true],
    ["another tag", '"HgaVDNL2-_58R6eQoVeMaf"', false],
    ["a longer tag", '"xHgaVDNL2-_58R6eQoVeMae"', false],
    ["the tag without quotes", "HgaVDNL2-_58R6eQoVeMae", false],
    ["a tag that is a star", '"*"', false],
    ["nothing", "", false],
  ])("checks %s", (_name, header, named) => {
    expect(namesTag(header, etag)).toBe(named);
  });
});
