import { describe, expect, it } from "@jest/globals";
import type { OrganizationChange } from "../src/api/schema.d.ts";
import { describePeopleChange, peopleActions } from "../src/people/describe-people-change.ts";

const entry: OrganizationChange = {
  id: "c1",
  action: "invited",
  user_id: "bob",
  actor: { id: "ada", email: "ada@example.com" },
  api_key_id: null,
  before: null,
  after: null,
  changed_at: "2027-01-31T09:00:00.000Z",
};
const projects = [{ id: "web", name: "Web", environments: [{ id: "prod", name: "production" }] }];
const nameOf = (id: string) => `${id}@example.com`;
const bob = { actor: { id: "bob", email: "bob@example.com" } };
const ofBob = { subject: { user_id: "bob" }, role: "editor", scope: { project: "web" } };
const ofGroup = { subject: { group: "ops" }, role: "admin", scope: { organization: "o" } };

const cases: [text: string, change: Partial<OrganizationChange>][] = [
  [
    "added the user bob@new.example.com",
    { action: "user_created", after: { email: "bob@new.example.com" } },
  ],
  ["changed the user bob@example.com", { action: "user_changed" }],
  [
    "deleted the user bob@old.example.com",
    { action: "user_deleted", before: { email: "bob@old.example.com" } },
  ],
  ["joined the organization", { action: "user_linked", ...bob }],
  ["linked an account to bob@example.com", { action: "user_linked" }],
  ["unlinked the account of bob@example.com", { action: "user_unlinked" }],
  ["invited bob@example.com", { action: "invited" }],
  ["withdrew the invitation of bob@example.com", { action: "invitation_withdrawn" }],
  ["created a sign-in link for bob@example.com", { action: "sign_in_link_created" }],
  ["gave bob@example.com the role editor in Web", { action: "granted", after: ofBob }],
  [
    "gave the group ops the role admin in the organization",
    { action: "granted", user_id: null, after: ofGroup },
  ],
  [
    "revoked the role editor in Web of bob@example.com",
    { action: "grant_withdrawn", before: ofBob },
  ],
  ["signed in", { action: "signed_in", ...bob }],
  ["signed out", { action: "signed_out", ...bob }],
  ["ended own sessions", { action: "sessions_ended", ...bob }],
  ["ended the sessions of bob@example.com", { action: "sessions_ended" }],
  [
    "was signed out by the identity provider",
    { action: "sessions_ended", ...bob, after: { ended_by: "provider" } },
  ],
  ["added a passkey", { action: "passkey_added", ...bob }],
  ["removed a passkey", { action: "passkey_removed", ...bob }],
  ["changed people", { action: "renamed" as "invited" }],
];

describe("an entry of the audit log of people", () => {
  it.each(cases)("reads: %s", (text, change) => {
    expect(describePeopleChange({ ...entry, ...change }, nameOf, projects)).toBe(text);
  });

  it("has words for every action", () => {
    const tested = new Set(cases.map(([, { action }]) => action));
    expect(Object.keys(peopleActions).filter((action) => !tested.has(action as "invited"))).toEqual(
      [],
    );
  });
});
