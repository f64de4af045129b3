import { describe, expect, it } from "@jest/globals";
import { readProviderClaims } from "../../src/sign-in/provider-claims.ts";

/** Tests how claims of the provider are read. The provider may send anything. */
const read = (claims: Record<string, unknown>) =>
  readProviderClaims(
    { sub: "1", ...claims },
    { issuer: "https://issuer.example.com", groupsClaim: "groups" },
  );

describe("given claims of an account", () => {
  it.each([
    ["an absent claim", {}, []],
    ["an empty list", { groups: [] }, []],
    ["null", { groups: null }, []],
    ["a list", { groups: ["a", "b", "a"] }, ["a", "b"]],
    ["a single value", { groups: "a" }, ["a"]],
    ["values that are no text", { groups: [1, {}, ["a"], "", "\0", "\ud800", "b"] }, ["b"]],
    ["values that no role can name", { groups: ["x".repeat(201), "b"] }, ["b"]],
  ])("reads the groups of %s", (_, claims, groups) => {
    expect(read(claims)).toMatchObject({ groups });
  });

  it.each([
    ["a reference to the groups", { _claim_names: { groups: "src1" } }],
    ["more groups than a session holds", { groups: Array.from({ length: 1_001 }, String) }],
  ])("rejects %s, because some groups would be missing", (_, claims) => {
    expect(read(claims)).toEqual({ refused: "groups_by_reference" });
  });

  it("accepts a reference to other claims", () => {
    expect(read({ _claim_names: { address: "src1" } })).toMatchObject({ groups: [] });
  });

  it.each([[undefined], [1], [""], ["x".repeat(256)], ["a\0"]])("rejects the subject %j", (sub) => {
    expect(read({ sub })).toEqual({ refused: "invalid_response" });
  });

  it.each([[undefined], [1], ["ada"], ["a b@example.com"], ["a\0@example.com"]])(
    "ignores the address %j",
    (email) => {
      expect(read({ email, email_verified: true })).toMatchObject({ email: undefined });
    },
  );

  it.each([[undefined], [false], ["true"], [1]])("does not accept %j as verified", (value) => {
    expect(read({ email: "a@example.com", email_verified: value })).toMatchObject({
      emailVerified: false,
    });
  });

  it("reads `__proto__` as data", () => {
    const claims = JSON.parse('{"sub":"1","__proto__":{"groups":["admins"],"email":"a@b.c"}}');
    expect(read(claims)).toMatchObject({ groups: [], email: undefined });
  });
});
