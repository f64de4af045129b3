import { describe, expect, it } from "@jest/globals";
import type { ListedChangeRequest, ProposedChange } from "../src/api/schema.d.ts";
import {
  mayApprove,
  whyNotApply,
  whyNotApprove,
  whyNotBypass,
  whyNotEdit,
  whyNotReject,
  whyNotWithdraw,
} from "../src/change-requests/may-act.ts";
import { proposedWords, subjectText } from "../src/change-requests/proposed-words.ts";
import { listedRequests, readRequestSearch } from "../src/change-requests/request-search.ts";
import { countText, missingText } from "../src/change-requests/request-status.ts";
import type { Role } from "../src/session/person.ts";
import type { Me } from "../src/session/session.tsx";

const now = new Date("2026-01-01T00:00:00Z");
const production = {
  ...{ id: "p", project_id: "w", name: "production", caution: false, created_at: "" },
  protected: { approvals: 1, self_approval: false, without_approval: [] },
};

const ofKey: Me = {
  user: { id: "me", email: "me@example.com", name: null },
  organization: { id: "o", name: "o" },
  project: { id: "w", name: "Web" },
  environments: [production],
  key: {
    ...{ id: "k", name: "k", environment_id: "p" },
    ...{ environment_only: false, expires_at: null },
  },
};

const reader = (project: Role): { me: Me } => ({
  me: { ...ofKey, roles: { organization: null, project, environments: new Map([["p", project]]) } },
});

const open: ListedChangeRequest = {
  ...{ id: "r", title: "On", reason: "", status: "open", content_hash: "h", approvals: [] },
  needed: [{ environment_id: "p", environment_name: "production", approvals: 1, given: 0 }],
  ...{ apply_at: null, created_by: "author", created_at: "", updated_at: "", applied_at: null },
  ...{ cause_id: null, closed_by: null, comment: null, bypass_reason: null },
  ...{ change_count: 1, summary: "" },
};

describe("who approves a change request", () => {
  it("is an approver who has looked at its content", () => {
    expect(whyNotApprove(open, reader("approver"), "h")).toBeUndefined();
    expect(mayApprove(open, reader("approver"))).toBe(true);
    expect(whyNotApprove(open, reader("editor"), "h")).toContain("role approver in production");
    expect(whyNotApprove(open, reader("approver"), "other")).toContain("content has changed");
  });

  it("is a person, and no key", () => {
    expect(whyNotApprove(open, { me: ofKey }, "h")).toContain("an API key cannot review");
    expect(whyNotReject(open, { me: ofKey })).toContain("an API key cannot review");
  });

  it("is not its author, unless the protection allows that", () => {
    const own = { ...open, created_by: "me" };
    expect(whyNotApprove(own, reader("approver"), "h")).toContain("another person");
    const lenient = { ...production, protected: { ...production.protected, self_approval: true } };
    const { me } = reader("approver");
    expect(whyNotApprove(own, { me: { ...me, environments: [lenient] } }, "h")).toBeUndefined();
  });

  it("approves once, and nothing stale", () => {
    const approval = { user_id: "me", environment_ids: ["p"], at: "", content_hash: "h" };
    expect(whyNotApprove({ ...open, approvals: [approval] }, reader("approver"), "h")).toContain(
      "You have approved",
    );
    const former = { ...approval, content_hash: "former" };
    expect(
      whyNotApprove({ ...open, approvals: [former] }, reader("approver"), "h"),
    ).toBeUndefined();
    expect(whyNotApprove({ ...open, status: "stale" }, reader("approver"), "h")).toContain(
      "rebase it first",
    );
    expect(whyNotApprove({ ...open, status: "draft" }, reader("approver"), "h")).toContain("draft");
  });
});

describe("who takes the other steps", () => {
  it("applies an approved request as its author or as an approver", () => {
    const approved = { ...open, status: "approved" as const };
    expect(whyNotApply(approved, reader("approver"), now)).toBeUndefined();
    expect(whyNotApply({ ...approved, created_by: "me" }, reader("viewer"), now)).toBeUndefined();
    expect(whyNotApply(approved, reader("editor"), now)).toContain("role approver");
    expect(whyNotApply(open, reader("approver"), now)).toContain("Approvals are missing");
    const later = { ...approved, apply_at: "2026-01-02T00:00:00Z" };
    expect(whyNotApply(later, reader("approver"), now)).toContain("at its time");
  });

  it("bypasses missing approvals as an admin, and withdraws as author or admin", () => {
    expect(whyNotBypass(open, reader("admin"))).toBeUndefined();
    expect(whyNotBypass(open, reader("approver"))).toContain("role admin in production");
    expect(whyNotBypass({ ...open, status: "approved" }, reader("admin"))).toContain("apply it");
    expect(whyNotWithdraw(open, reader("approver"))).toContain("Only its author");
    expect(whyNotWithdraw(open, reader("admin"))).toBeUndefined();
    expect(whyNotWithdraw({ ...open, created_by: "me" }, reader("viewer"))).toBeUndefined();
    expect(whyNotEdit(reader("viewer"))).toContain("role editor");
  });
});

describe("the list of change requests", () => {
  const listed = (search: Parameters<typeof listedRequests>[1]) =>
    listedRequests(
      [
        { id: "a", created_by: "me" },
        { id: "b", created_by: "author" },
        { id: "c", created_by: "author" },
      ],
      search,
      { userId: "me", mayApprove: ({ id }) => id === "c" },
    ).map(({ id }) => id);

  it("begins with the requests that the reader can approve", () => {
    expect(listed({})).toEqual(["c", "a", "b"]);
  });

  it("has filters in the address", () => {
    expect(listed({ own: true })).toEqual(["a"]);
    expect(readRequestSearch({ status: "stale", own: true })).toEqual({
      status: "stale",
      own: true,
    });
    expect(readRequestSearch({ status: "toString", own: "yes" })).toEqual({});
  });

  it("counts up to 99 in the navigation", () => {
    expect([0, 3, 99, 100].map(countText)).toEqual([undefined, "3", "99", "99+"]);
  });

  it("says which approvals are missing", () => {
    expect(missingText(open)).toBe("Approvals are missing: 1 more from approvers of production.");
    expect(missingText({ needed: [] })).toBeUndefined();
  });
});

describe("a proposed change in words", () => {
  const off = { enabled: false, rollout_percentage: 100, targeting_rules: [] };
  const change: ProposedChange = {
    ...{ kind: "state", flag_id: "f", flag_key: "checkout", base_version: 1, dependents: 2 },
    ...{ environment_id: "p", environment_name: "production", patch: { enabled: true } },
    ...{ before: off, after: { ...off, enabled: true }, now: { ...off, rollout_percentage: 40 } },
  };

  it("has the differences, those that something else made, and what depends on the flag", () => {
    expect(subjectText(change)).toBe("checkout in production");
    expect(proposedWords(change)).toMatchObject({
      differences: [{ label: "State", before: "off", after: "on" }],
      since: [{ label: "Percentage", before: "100 %", after: "40 %" }],
      notes: ["2 flags require this one in production."],
    });
  });

  it("has the values of variations, and the number of entries", () => {
    const of = {
      kind: "flag_variations",
      flag_id: "f",
      flag_key: "color",
      base_version: 1,
    } as const;
    const before = [{ key: "blue", value: "#00f" }];
    const variations = [
      { key: "blue", value: "#008" },
      { key: "red", value: "#f00" },
    ];
    expect(proposedWords({ ...of, before, variations }).differences).toEqual([
      { label: "blue", before: '"#00f"', after: '"#008"' },
      { label: "red", after: '"#f00"' },
    ]);
    const entries = { kind: "audience_list", audience: "beta", base_version: 1 } as const;
    expect(proposedWords({ ...entries, added: 3, removed: 0 }).differences).toEqual([
      { label: "Entries", after: "3" },
    ]);
  });

  it("has what something else has made of an audience, and of a protection", () => {
    const plan = (value: string) => [[{ attribute: "plan", operator: "equals" as const, value }]];
    const audience: ProposedChange = {
      ...{ kind: "audience", audience: "beta", base_version: 1, patch: { match: plan("pro") } },
      ...{ before: { match: [], list: null }, now: { match: plan("free"), list: null } },
    };
    expect(proposedWords(audience).since).toMatchObject([
      { label: "Alternatives", before: "none", after: expect.stringContaining("free") },
    ]);
    const protection: ProposedChange = {
      ...{ kind: "protection", environment_id: "p", environment_name: "production" },
      ...{ base_version: 1, before: production.protected, now: null },
      protected: { ...production.protected, approvals: 2 },
    };
    expect(proposedWords(protection).since).toEqual([
      { label: "Protection", before: "1 approval", after: "Not protected" },
    ]);
  });
});
