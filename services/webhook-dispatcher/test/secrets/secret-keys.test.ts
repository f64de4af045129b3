import { inspect } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { readSecretKeys } from "../../src/secrets/secret-box.ts";

const bytes = (fill: number) => Buffer.alloc(32, fill);
const base64 = (fill: number) => bytes(fill).toString("base64");

describe("the keys for secrets", () => {
  it("are parsed with their names, in their order", () => {
    const keys = readSecretKeys(`2026b:${base64(2)}, 2026a:${base64(1)}`);
    expect(keys?.map(({ id, key }) => [id, key.export()])).toEqual([
      ["2026b", bytes(2)],
      ["2026a", bytes(1)],
    ]);
  });

  it("do not reveal their bytes when they are printed", () => {
    const keys = readSecretKeys(`a:${base64(7)}`);
    expect(inspect(keys, { depth: null, showHidden: true })).not.toMatch(/BwcH|07 07|7, 7/);
    expect(JSON.stringify(keys)).not.toContain("BwcH");
  });

  it.each([
    ["nothing", ""],
    ["no name", base64(1)],
    ["an empty name", `:${base64(1)}`],
    ["a name with a space", `a b:${base64(1)}`],
    ["31 bytes", `a:${Buffer.alloc(31).toString("base64")}`],
    ["33 bytes", `a:${Buffer.alloc(33).toString("base64")}`],
    ["48 bytes", `a:${Buffer.alloc(48).toString("base64")}`],
    ["the URL alphabet of base64", `a:${Buffer.alloc(32, 255).toString("base64url")}=`],
    ["hexadecimal", `a:${bytes(1).toString("hex")}`],
    ["text after the key", `a:${base64(1)}:b`],
    ["an empty second key", `a:${base64(1)},`],
    ["a broken second key", `a:${base64(1)},b:nonsense`],
    ["one name twice", `a:${base64(1)},a:${base64(2)}`],
  ])("are rejected: %s", (_, text) => {
    expect(readSecretKeys(text)).toBeUndefined();
  });
});
