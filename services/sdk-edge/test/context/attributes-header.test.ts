import { describe, expect, it } from "@jest/globals";
import { readAttributesHeader } from "../../src/context/headers.ts";

describe("given X-User-Attributes", () => {
  it.each([
    ["one attribute", "plan=pro", { plan: "pro" }],
    ["several", "plan=pro,country=DE", { plan: "pro", country: "DE" }],
    [
      "white space around names and values",
      " plan = pro ,\tcountry = DE ",
      { plan: "pro", country: "DE" },
    ],
    ["white space within", "full name=Jane Doe", { "full name": "Jane Doe" }],
    ["further equals signs as part of the value", "filter=a=b==", { filter: "a=b==" }],
    ["an empty value", "plan=", { plan: "" }],
    ["an empty id, which counts as missing", "id=,user_id=,plan=a", { plan: "a" }],
    ["an empty id beside user_id", "user_id=u,id=", { id: "u" }],
    ["a repeated name, of which the last wins", "plan=free,plan=pro", { plan: "pro" }],
    [
      "leading, trailing and repeated commas",
      ",plan=pro,, ,country=DE,",
      { plan: "pro", country: "DE" },
    ],
    ["only commas", ", ,", {}],
    ["user_id, which is id", "user_id=u", { id: "u" }],
    ["user_id after id, which wins", "id=i,user_id=u", { id: "i" }],
    ["user_id before id, which wins", "user_id=u,id=i", { id: "i" }],
    ["numbers and booleans, which are text", "n=1,b=true", { n: "1", b: "true" }],
    ["percent signs and quotes unchanged", 'a=%20,b="c"', { a: "%20", b: '"c"' }],
  ])("reads %s", (_case, list, expected) => {
    expect(readAttributesHeader(list)).toEqual(new Map(Object.entries(expected)));
  });

  it("accepts names of prototype members as attribute names", () => {
    expect(readAttributesHeader("__proto__=a,constructor=b")).toEqual(
      new Map([
        ["__proto__", "a"],
        ["constructor", "b"],
      ]),
    );
  });

  it.each([
    ["no equals sign", "marked"],
    ["no equals sign in one of several", "plan=pro,marked"],
    ["no name", "=marked"],
    ["a name of white space", "  =marked"],
  ])("rejects %s", (_case, list) => {
    expect(readAttributesHeader(list)).toEqual({
      rejected: "VALIDATION_001",
      message: "X-User-Attributes must be a list like name=value,name=value",
    });
  });
});
