import { describe, expect, it } from "@jest/globals";
import { readAttributes } from "../src/index.ts";

const read = (json: string, nested: "reject" | "ignore" = "reject") => {
  const result = readAttributes(JSON.parse(json), nested);
  return result.ok ? [...result.attributes] : result.problem;
};

describe("given a JSON object of attributes", () => {
  it("accepts texts, numbers, booleans and arrays of these", () => {
    expect(read('{"a":"x","b":1.5,"c":false,"d":["x",1,true],"e":[]}')).toEqual([
      ["a", "x"],
      ["b", 1.5],
      ["c", false],
      ["d", ["x", 1, true]],
      ["e", []],
    ]);
  });

  it("treats null as missing", () => {
    expect(read('{"a":null,"id":null,"user_id":"u"}')).toEqual([["id", "u"]]);
  });

  it("reads user_id as id, unless the object has an id", () => {
    expect(read('{"user_id":"other"}')).toEqual([["id", "other"]]);
    expect(read('{"user_id":"other","id":"own"}')).toEqual([["id", "own"]]);
  });

  it("treats an empty id as missing", () => {
    expect(read('{"id":"","plan":""}')).toEqual([["plan", ""]]);
    expect(read('{"user_id":""}')).toEqual([]);
    expect(read('{"id":"","user_id":"other"}')).toEqual([["id", "other"]]);
    expect(read('{"user_id":"","id":"own"}')).toEqual([["id", "own"]]);
  });

  it("accepts a text or a number as an id, and uses the JSON text of the number", () => {
    expect(read('{"id":42}')).toEqual([["id", "42"]]);
    for (const id of ["true", '["a"]']) {
      expect(read(`{"id":${id}}`)).toEqual({ attribute: "id", expected: "a string or a number" });
    }
    expect(read('{"user_id":false}', "ignore")).toMatchObject({ attribute: "user_id" });
    for (const nested of ["reject", "ignore"] as const)
      expect(read('{"id":1e400}', nested)).toMatchObject({ attribute: "id" });
    expect(read('{"id":{}}', "ignore")).toEqual([]);
  });

  it.each<[string, [string, unknown][]]>([
    ['{"a":{}}', []],
    ['{"a":1e400}', []],
    ['{"a":[[]]}', [["a", []]]],
    ['{"a":[null,"x"]}', [["a", ["x"]]]],
    ['{"a":[1,{}]}', [["a", [1]]]],
    ['{"a":[1e400,true]}', [["a", [true]]]],
  ])("rejects %s without repeating its value, or ignores invalid values", (json, remaining) => {
    expect(read(json)).toEqual({
      attribute: "a",
      expected: "a string, a number, true, false, or an array of these",
    });
    expect(read(json, "ignore")).toEqual(remaining);
  });

  it("reads own properties only, whatever their names", () => {
    expect(read('{"__proto__":"x","constructor":"y"}')).toEqual([
      ["__proto__", "x"],
      ["constructor", "y"],
    ]);
    expect(readAttributes(Object.create({ inherited: "x" }), "reject")).toMatchObject({
      attributes: new Map(),
    });
  });
});
