import { describe, expect, it } from "@jest/globals";
import { checkIfMatch, checkMatches, namesTag } from "../src/index.ts";

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

describe("given the header If-Match", () => {
  const check = (...ifMatch: string[]) => checkIfMatch(ifMatch, { version: 7 }, "/flag");

  it.each([[['"7"']], [['"6"', '"7"']], [['"7-aZ_9-x"']], [["*"]]])(
    "accepts %j for version 7",
    (ifMatch) => {
      expect(check(...ifMatch)).toBeUndefined();
      expect(checkIfMatch(undefined, { version: 7 }, "/flag")).toBeUndefined();
    },
  );

  it.each([['"6"'], ['W/"7"'], ['W/"7-aZ"'], ['"77"'], ['"6-7"'], ['"7-"'], ['"-7"'], ['""']])(
    "rejects %s for version 7, because the comparison is strong",
    (ifMatch) => {
      expect(check(ifMatch)).toMatchObject({ rejected: "CONFLICT_003", headers: { etag: '"7"' } });
    },
  );

  it("never matches if nothing exists, not even with *", () => {
    expect(checkMatches(["*"], undefined, "the schedule")).toEqual({
      rejected: "CONFLICT_003",
      message:
        "If-Match does not name the schedule, because there is none. Read that again, then send the request again.",
    });
  });
});
