import { describe, expect, it } from "@jest/globals";
import type { AuditedChange } from "../src/api/schema.d.ts";
import { nilId, signedInBy } from "../src/changes/signed-in-by.ts";

type Change = Parameters<typeof signedInBy>[0];
type Via = NonNullable<AuditedChange["actor"]["via"]>;

const change = (via: Via | undefined, more: Partial<Change> = {}): Change => ({
  actor: { id: "u1", email: "ada@example.com", ...(via && { via }) },
  api_key_id: null,
  ...more,
});
const operator = { id: nilId, email: "operator", via: "operator" } as const;

describe("how the actor of a change was signed in", () => {
  it.each([
    ["an entry of an earlier release", change(undefined), ""],
    ["the identity provider", change("oidc"), "with the identity provider"],
    ["a passkey", change("passkey"), "with a passkey"],
    ["a link of the operator", change("operator"), "with the operator's link"],
    ["the operator", { ...change("operator"), actor: operator }, ""],
    ["a known key", change("key", { api_key_id: "k1" }), "by the key CI"],
    ["an unknown key", change("key", { api_key_id: "k2" }), "by the key k2"],
    ["a key without an id", change("key"), "by an API key"],
    ["a schedule", change("schedule"), "by a schedule"],
    [
      "a scheduled state, whose sentence says it",
      change("schedule", { change_type: "scheduled" }),
      "",
    ],
    ["a change request", change("change_request"), "by a change request"],
  ])("is in words for %s", (_what, entry, text) => {
    expect(signedInBy(entry, new Map([["k1", "CI"]]))).toBe(text);
  });
});
