import { emptyContext } from "@halyard/evaluation";
import { isProblem } from "@halyard/http";
import { describe, expect, it } from "@jest/globals";
import { readUserContext } from "../../src/context/user-context.ts";
import { asQuery, holds } from "./reading.ts";

const readQuery = (query: string) =>
  readUserContext({ headers: {}, ...asQuery(query), body: undefined });

describe("given a query string", () => {
  it.each([
    ["nothing", "", ""],
    ["other parameters", "key=checkout&explain=true", ""],
    ["user_id alone", "user_id=u-1", "u-1"],
    ["user_id among others", "key=checkout&user_id=u-1&explain=true", "u-1"],
    ["user_id at the end", "key=checkout&user_id=u-1", "u-1"],
    ["an empty user_id", "user_id=", ""],
    ["user_id without a value", "user_id&key=checkout", ""],
    ["a plus, which is a space", "user_id=Jane+Doe", "Jane Doe"],
    ["percent-encoded characters", "user_id=J%C3%BCrgen%20%2B%26%3D", "Jürgen +&="],
    ["both", "user_id=a+b%2Bc", "a b+c"],
    ["further equals signs", "user_id=a=b", "a=b"],
    ["a percent-encoded name", "%75ser_id=u-1", "u-1"],
    ["a name that is encoded as a whole", "%75%73%65%72%5F%69%64=u-1", "u-1"],
    ["names that only contain user_id", "user_ids=a&my_user_id=b&user_id2=c", ""],
    ["names in brackets", "user_id[]=a&user_id%5B%5D=b", ""],
    ["another case", "USER_ID=a", ""],
    ["the name as a value", "key=user_id&q=user_id", ""],
    ["the name after an encoded ampersand", "key=a%26user_id=b", ""],
    ["a name with a plus", "user+id=a", ""],
    ["empty parts", "&&user_id=u-1&&", "u-1"],
    ["a part without a name", "=user_id&=x", ""],
  ])("reads %s", (_case, query, expected) => {
    const context = readQuery(query);
    if (isProblem(context)) throw new Error(`The query was rejected: ${context.message}`);
    if (expected === "") expect(context).toBe(emptyContext);
    else expect(holds(context, "id", expected)).toBe(true);
  });

  it.each([
    ["twice", "user_id=marked&user_id=marked"],
    ["twice, once without a value", "user_id=marked&user_id"],
    ["twice, once encoded", "user_id=marked&%75ser_id=marked"],
  ])("rejects user_id %s", (_case, query) => {
    expect(readQuery(query)).toEqual({
      rejected: "VALIDATION_001",
      message: "query parameter /user_id must be given once",
    });
  });

  it.each([
    ["a lone percent sign", "user_id=%"],
    ["invalid hexadecimal digits", "user_id=%zz"],
    ["invalid UTF-8", "user_id=%FF"],
    ["a surrogate in UTF-8", "user_id=%ED%A0%80"],
    ["a broken name", "%FF=marked&user_id=marked"],
    ["another parameter", "key=%E4&user_id=marked"],
  ])("rejects an invalid encoding: %s", (_case, query) => {
    expect(readQuery(query)).toEqual({
      rejected: "VALIDATION_001",
      message: "the query string is not valid UTF-8",
    });
  });
});
