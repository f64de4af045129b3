import { isProblem } from "@halyard/http";
import { describe, expect, it } from "@jest/globals";
import { readBodyAttributes } from "../../src/context/body-attributes.ts";
import { attributesOf } from "./reading.ts";

/** Parses bodies from JSON, because parsing creates own properties that a literal does not, such as `__proto__`. */
const read = (json: string) => attributesOf(readBodyAttributes(JSON.parse(json)));

describe("given a body", () => {
  it.each([
    [
      "attributes at the top level",
      '{"user_id":"u","email":"e","seats":3,"beta":true,"teams":["a",1]}',
      { id: "u", email: "e", seats: 3, beta: true, teams: ["a", 1] },
    ],
    ["no attributes", "{}", {}],
    ["null, which counts as missing", '{"id":null,"plan":null,"user":null}', {}],
    ["an empty id, which counts as missing", '{"id":"","user":{"id":""}}', {}],
    ["an empty id beside user_id", '{"user_id":"u","id":""}', { id: "u" }],
    ["id beside user_id", '{"user_id":"u","id":"i"}', { id: "i" }],
    ["a number as id, which is its text", '{"user_id":7}', { id: "7" }],
    ["user", '{"user":{"id":"u","attributes":{"plan":"pro"}}}', { id: "u", plan: "pro" }],
    ["user without attributes", '{"user":{"id":"u"}}', { id: "u" }],
    ["user whose attributes are null", '{"user":{"id":"u","attributes":null}}', { id: "u" }],
    ["user without an id", '{"user":{"attributes":{"plan":"pro"}}}', { plan: "pro" }],
    ["an empty user", '{"user":{}}', {}],
    [
      "user with further fields",
      '{"user":{"id":"u","plan":"pro","attributes":{"country":"DE"}}}',
      { id: "u", plan: "pro", country: "DE" },
    ],
    ["user beside other fields", '{"user":{"id":"u"},"plan":"pro"}', { id: "u", plan: "pro" }],
    [
      "a user that is text, an attribute like any other",
      '{"user":"jane","id":"u"}',
      { user: "jane", id: "u" },
    ],
    ["a user that is a list, likewise", '{"user":["jane"]}', { user: ["jane"] }],
    ["attributes that is text, outside of user", '{"attributes":"a"}', { attributes: "a" }],
  ])("reads %s", (_case, json, expected) => {
    expect(read(json)).toEqual(new Map(Object.entries(expected)));
  });

  it.each([
    ["user.id over user.attributes", '{"user":{"id":"wins","attributes":{"id":"no"}}}', "id"],
    [
      "user.id over user_id in user.attributes",
      '{"user":{"id":"wins","attributes":{"user_id":"no"}}}',
      "id",
    ],
    [
      "user.attributes over user.user_id beside an empty user.id",
      '{"user":{"id":"","user_id":"no","attributes":{"id":"wins"}}}',
      "id",
    ],
    ["user.id over user.user_id", '{"user":{"id":"wins","user_id":"no"}}', "id"],
    ["user.id over the top level", '{"user":{"id":"wins"},"id":"no","user_id":"no"}', "id"],
    [
      "user.attributes over user.user_id",
      '{"user":{"user_id":"no","attributes":{"id":"wins"}}}',
      "id",
    ],
    [
      "user.attributes over other fields of user",
      '{"user":{"plan":"no","attributes":{"plan":"wins"}}}',
      "plan",
    ],
    [
      "user.attributes over the top level",
      '{"user":{"attributes":{"plan":"wins"}},"plan":"no"}',
      "plan",
    ],
    ["other fields of user over the top level", '{"user":{"plan":"wins"},"plan":"no"}', "plan"],
    [
      "an attribute over null",
      '{"user":{"id":null,"plan":null,"attributes":{"id":null,"plan":null}},"id":"wins"}',
      "id",
    ],
  ])("prefers %s", (_case, json, attribute) => {
    expect(read(json)).toEqual(new Map([[attribute, "wins"]]));
  });

  it.each([
    '{"__proto__":"a","constructor":"b","hasOwnProperty":"c"}',
    '{"user":{"__proto__":"a","constructor":"b","hasOwnProperty":"c"}}',
    '{"user":{"attributes":{"__proto__":"a","constructor":"b","hasOwnProperty":"c"}}}',
    '{"user":{"attributes":{"constructor":"b"},"hasOwnProperty":"c"},"__proto__":"a"}',
  ])("accepts names of prototype members as attribute names: %s", (json) => {
    const attributes = read(json);
    expect([...attributes].sort()).toEqual([
      ["__proto__", "a"],
      ["constructor", "b"],
      ["hasOwnProperty", "c"],
    ]);
  });

  it("does not read a user or attributes from a prototype in the body", () => {
    const problem = readBodyAttributes(JSON.parse('{"__proto__":{"user":{"id":"marked"}}}'));
    expect(problem).toHaveProperty("rejected", "VALIDATION_001");
    expect(read("{}").has("__proto__")).toBe(false);
  });

  it("does not modify the body", () => {
    const json = '{"user":{"id":"u","attributes":{"a":1},"b":2},"c":3}';
    const body: unknown = JSON.parse(json);
    readBodyAttributes(body);
    expect(JSON.stringify(body)).toBe(json);
  });
});

describe("given an invalid body", () => {
  it.each([
    ["null", "null", '"" (the whole document) must be an object'],
    ["a list", '["marked"]', '"" (the whole document) must be an object'],
    ["text", '"marked"', '"" (the whole document) must be an object'],
    ["a number", "5", '"" (the whole document) must be an object'],
    [
      "user.attributes that is text",
      '{"user":{"attributes":"marked"}}',
      "/user/attributes must be an object",
    ],
    [
      "user.attributes that is a list",
      '{"user":{"attributes":["marked"]}}',
      "/user/attributes must be an object",
    ],
    ["an object", '{"marked":{}}', /^"" \(the whole document\) has an attribute that is not /],
    [
      "an array in an array",
      '{"marked":[["marked"]]}',
      /^"" \(the whole document\) has an attribute that is not /,
    ],
    [
      "null in an array",
      '{"marked":[null]}',
      /^"" \(the whole document\) has an attribute that is not /,
    ],
    [
      "a number beyond a double",
      '{"marked":-1e400}',
      /^"" \(the whole document\) has an attribute that is not /,
    ],
    [
      "a number beyond a double in an array",
      '{"marked":[1e400]}',
      /^"" \(the whole document\) has an attribute that is not /,
    ],
    ["an object in user", '{"user":{"marked":{}}}', /^\/user has an attribute that is not /],
    [
      "an object in user.attributes",
      '{"user":{"attributes":{"marked":{}}}}',
      /^\/user\/attributes has an attribute that is not /,
    ],
    ["an id that is a boolean", '{"id":true}', /^\/id must be /],
    ["a user_id that is a list", '{"user_id":["marked"]}', /^\/user_id must be /],
    ["a user.id that is an object", '{"user":{"id":{"marked":1}}}', /^\/user\/id must be /],
    [
      "an id in user.attributes that is a boolean",
      '{"user":{"id":"u","attributes":{"id":true}}}',
      /^\/user\/attributes\/id must be /,
    ],
  ])("rejects %s", (_case, json, message) => {
    const problem = readBodyAttributes(JSON.parse(json));
    if (!isProblem(problem)) throw new Error("The body was accepted.");
    expect(problem.rejected).toBe("VALIDATION_001");
    expect(problem.message).toMatch(message);
    expect(problem.message).not.toContain("marked");
  });
});
