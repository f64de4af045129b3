import { compile, type EvaluationContext, emptyContext } from "@halyard/evaluation";
import { describe, expect, it } from "@jest/globals";
import { readOfrepContext } from "../../src/context/ofrep-context.ts";
import { holds } from "./reading.ts";

function read(json: string): EvaluationContext {
  const context = readOfrepContext(JSON.parse(json));
  if ("errorCode" in context) throw new Error(`The body was rejected: ${context.errorDetails}`);
  return context;
}

describe("given the body of an OFREP request", () => {
  it.each([
    ["no context", "{}"],
    ["a context that is null", '{"context":null}'],
    ["an empty context", '{"context":{}}'],
    ["an empty targeting key", '{"context":{"targetingKey":""}}'],
    [
      "only values that count as missing",
      '{"context":{"targetingKey":null,"a":null,"b":{},"c":{"e":[]},"d":1e400}}',
    ],
    ["ignored attributes beside the context", '{"id":"u","user":{"id":"u"}}'],
    ["a context in a prototype in the body", '{"__proto__":{"context":{"targetingKey":"u"}}}'],
  ])("returns the shared empty context: %s", (_case, json) => {
    expect(read(json)).toBe(emptyContext);
  });

  it.each([
    ["the targeting key", '{"targetingKey":"u"}', "id", "u"],
    ["the targeting key for a rule on targetingKey", '{"targetingKey":"u"}', "targetingKey", "u"],
    ["a targeting key that is a number", '{"targetingKey":7}', "id", "7"],
    ["id beside an empty targeting key", '{"targetingKey":"","id":"i"}', "id", "i"],
    ["the targeting key over id", '{"id":"i","targetingKey":"u"}', "id", "u"],
    ["the targeting key over user_id", '{"user_id":"i","targetingKey":"u"}', "id", "u"],
    ["the targeting key over an id of the wrong type", '{"targetingKey":"u","id":true}', "id", "u"],
    [
      "the targeting key over a user_id of the wrong type",
      '{"user_id":["i"],"targetingKey":7}',
      "id",
      "7",
    ],
    ["id without a targeting key", '{"targetingKey":null,"id":"i"}', "id", "i"],
    ["user_id without a targeting key", '{"user_id":"i"}', "id", "i"],
    ["attributes of all kinds", '{"n":1.5}', "n", 1.5],
    ["booleans", '{"b":false}', "b", false],
    ["arrays", '{"l":["a","b"]}', "l", "b"],
    ["the valid elements of an array", '{"l":[null,{},[1],1e400,"b"]}', "l", "b"],
    ["an array without valid elements as empty", '{"l":[null],"plan":"pro"}', "plan", "pro"],
    ["attributes beside nested values", '{"nested":{"a":{"b":[]}},"plan":"pro"}', "plan", "pro"],
    ["names of prototype members", '{"__proto__":"a"}', "__proto__", "a"],
  ])("reads %s", (_case, context, attribute, value) => {
    expect(holds(read(`{"context":${context}}`), attribute, value)).toBe(true);
  });

  it("converts a numeric targeting key to its text, like every id", () => {
    const flag = compile({
      key: "asks",
      enabled: true,
      rollout_percentage: 100,
      targeting_rules: [
        // Only a text can be a version.
        { conditions: [{ attribute: "id", operator: "semver_eq", value: "7.0.0" }] },
      ],
    });
    expect(flag.evaluate(read('{"context":{"targetingKey":7}}')).value).toBe(true);
  });
});

describe("given an invalid body of an OFREP request", () => {
  it.each([undefined, null, [], "marked", 5, true, [{ context: {} }]])(
    "returns PARSE_ERROR for %j",
    (body) => {
      expect(readOfrepContext(body)).toEqual({
        errorCode: "PARSE_ERROR",
        errorDetails: "The body must be a JSON object",
      });
    },
  );

  it.each([
    ['"marked"', "/context must be an object"],
    ['["marked"]', "/context must be an object"],
    ["5", "/context must be an object"],
    ["false", "/context must be an object"],
    ['{"targetingKey":true}', "/context/targetingKey must be a string or a number"],
    ['{"targetingKey":{"marked":1}}', "/context/targetingKey must be a string or a number"],
    ['{"targetingKey":["marked"],"id":"i"}', "/context/targetingKey must be a string or a number"],
    ['{"targetingKey":1e400}', "/context/targetingKey must be a string or a number"],
    ['{"id":1e400}', "/context/id must be a string or a number"],
    ['{"user_id":-1e400}', "/context/user_id must be a string or a number"],
    ['{"id":true}', "/context/id must be a string or a number"],
    ['{"user_id":["marked"]}', "/context/user_id must be a string or a number"],
    ['{"targetingKey":"","user_id":true}', "/context/user_id must be a string or a number"],
    ['{"id":[{}]}', "/context/id must be a string or a number"],
  ])("returns INVALID_CONTEXT: %s", (context, errorDetails) => {
    expect(readOfrepContext(JSON.parse(`{"context":${context}}`))).toEqual({
      errorCode: "INVALID_CONTEXT",
      errorDetails,
    });
  });
});
