import { isProblem } from "@halyard/http";
import { describe, expect, it } from "@jest/globals";
import { readContextHeader } from "../../src/context/headers.ts";
import { asHeader, attributesOf } from "./reading.ts";

const read = (value: string) => attributesOf(readContextHeader(value));
const inBase64 = (text: string) => Buffer.from(text).toString("base64");
const inBase64url = (text: string) => Buffer.from(text).toString("base64url");

describe("given X-User-Context in JSON", () => {
  it.each([
    [
      "attributes of all kinds",
      '{"id":"u","n":1.5,"b":false,"l":["a",2,true]}',
      [
        ["id", "u"],
        ["n", 1.5],
        ["b", false],
        ["l", ["a", 2, true]],
      ],
    ],
    ["user_id, which is id", '{"user_id":"u"}', [["id", "u"]]],
    ["user_id beside id, which wins", '{"id":"i","user_id":"u"}', [["id", "i"]]],
    ["an id that is a number", '{"id":12}', [["id", "12"]]],
    ["an empty id, which counts as missing", '{"id":"","user_id":""}', []],
    ["an empty id beside user_id", '{"id":"","user_id":"u"}', [["id", "u"]]],
    ["null, which counts as missing", '{"id":null,"plan":null}', []],
    ["an id that is null beside user_id", '{"id":null,"user_id":"u"}', [["id", "u"]]],
    ["no attributes", "{}", []],
    ["leading white space", ' \t{"plan":"pro"}', [["plan", "pro"]]],
    [
      "names of prototype members",
      '{"__proto__":"a","constructor":"b","toString":"c"}',
      [
        ["__proto__", "a"],
        ["constructor", "b"],
        ["toString", "c"],
      ],
    ],
    ["a lone surrogate", '{"name":"\\ud800"}', [["name", "\ud800"]]],
  ])("reads %s", (_case, json, expected) => {
    expect(read(json)).toEqual(new Map(expected as [string, unknown][]));
  });

  it("reads its bytes as UTF-8", () => {
    expect(read(asHeader('{"name":"Jürgen 🎈"}'))).toEqual(new Map([["name", "Jürgen 🎈"]]));
  });
});

describe("given X-User-Context in base64", () => {
  const json = '{"name":"Jürgen?>","plan":"pro"}';
  const expected = new Map([
    ["name", "Jürgen?>"],
    ["plan", "pro"],
  ]);

  it.each([
    ["base64", inBase64(json)],
    ["base64 without padding", inBase64(json).replaceAll("=", "")],
    ["base64url", inBase64url(json)],
    ["base64url with padding", inBase64url(`${json} `).padEnd(44, "=")],
    ["white space around the object", inBase64(` ${json}\n`)],
  ])("reads %s", (_case, value) => {
    expect(read(value)).toEqual(expected);
  });

  it("reads every length of padding", () => {
    for (const plan of ["", "a", "ab", "abc"])
      for (const encode of [inBase64, inBase64url])
        expect(read(encode(JSON.stringify({ plan })))).toEqual(new Map([["plan", plan]]));
  });
});

describe("given X-User-Context with two members of the same name", () => {
  it.each([
    '{"marked":"a","marked":"b"}',
    inBase64('{"plan":["a:",{"marked":1,"\\u006darked":2}]}'),
  ])("is rejected without the name: %s", (value) => {
    expect(readContextHeader(value)).toEqual({
      rejected: "VALIDATION_001",
      message: "X-User-Context has an object with two members of the same name",
    });
  });
});

describe("given X-User-Context that is not a JSON object", () => {
  const notAnObject = {
    rejected: "VALIDATION_001",
    message: "X-User-Context must be a JSON object in UTF-8, as it is or in base64 or base64url",
  };

  it.each([
    ["a word", "marked"],
    ["truncated JSON", '{"plan":"marked'],
    ["JSON with trailing text", '{"plan":"marked"} x'],
    ["JSON sent twice", '{"plan":"marked"}, {"plan":"marked"}'],
    ["base64 sent twice", `${inBase64('{"a":1}')}, ${inBase64('{"a":1}')}`],
    ["a JSON array", '["marked"]'],
    ["a JSON array in base64", inBase64('["marked"]')],
    ["a JSON string in base64", inBase64('"marked"')],
    ["null in base64", inBase64("null")],
    ["text in base64", inBase64("marked")],
    [
      "base64 with white space",
      `${inBase64('{"plan":"free"}').slice(0, 8)} ${inBase64('{"plan":"free"}').slice(8)}`,
    ],
    ["base64 and base64url mixed", `${inBase64('{"a":"???"}')}-_+/`],
    ["base64 with too much padding", `${inBase64('{"ab":"c"}').replaceAll("=", "")}===`],
    ["base64 with too little padding", inBase64('{"ab":"c"}').slice(0, -1)],
    ["base64 with superfluous padding", `${inBase64('{"ab":"cd"} ')}=`],
    ["base64 with an incomplete last byte", `${inBase64('{"ab":"cd"} ')}A`],
    ["only padding", "=="],
    ["invalid UTF-8 in base64", Buffer.from('{"a":"\xff"}', "latin1").toString("base64")],
    ["a byte order mark in base64", inBase64('\ufeff{"plan":"free"}')],
    ["percent-encoded JSON", "%7B%22a%22%3A1%7D"],
    ["a quoted string", '"{}"'],
  ])("rejects %s", (_case, value) => {
    expect(readContextHeader(value)).toEqual(notAnObject);
  });

  it("rejects invalid UTF-8", () => {
    expect(readContextHeader('{"plan":"\xff"}')).toEqual({
      rejected: "VALIDATION_001",
      message: "X-User-Context must be valid UTF-8",
    });
  });
});

describe("given X-User-Context with an invalid attribute value", () => {
  it.each([
    ["an object", '{"marked":{}}'],
    ["an object named __proto__", '{"__proto__":{"marked":true}}'],
    ["an array in an array", '{"marked":[["a"]]}'],
    ["null in an array", '{"marked":[null]}'],
    ["an object in an array", '{"marked":[{}]}'],
    ["a number beyond a double", '{"marked":1e400}'],
    ["an id that is a boolean", '{"id":true}'],
    ["an id that is an array", '{"id":["marked"]}'],
    ["a user_id that is an object", '{"user_id":{"marked":1}}'],
  ])("rejects %s", (_case, json) => {
    const problem = readContextHeader(json);
    if (!isProblem(problem)) throw new Error("The header was accepted.");
    expect(problem.rejected).toBe("VALIDATION_001");
    expect(problem.message).toMatch(/^X-User-Context /);
    expect(problem.message).not.toContain("marked");
    expect(problem.message).not.toContain("__proto__");
  });
});
