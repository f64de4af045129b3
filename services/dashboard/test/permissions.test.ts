import { describe, expect, it } from "@jest/globals";
import { type Action, whyNot } from "../src/session/permissions.ts";
import type { Role } from "../src/session/person.ts";
import type { Me } from "../src/session/session.tsx";

const production = { id: "p", name: "production" };
const staging = { id: "s", name: "staging" };

const common = {
  ...{
    user: { id: "u", email: "ada@example.com", name: null },
    organization: { id: "o", name: "o" },
  },
  ...{ project: { id: "w", name: "Web" }, environments: [] },
};

function sessionOfKey(isLimited: boolean): { me: Me } {
  const key = { id: "k", name: "k", environment_id: "p", expires_at: null };
  return { me: { ...common, key: { ...key, environment_only: isLimited } } };
}

function sessionOfPerson(project: Role | null, inProduction: Role, inStaging: Role): { me: Me } {
  const environments = new Map([
    ["p", inProduction],
    ["s", inStaging],
  ]);
  const roles = { organization: null, project, environments };
  return { me: { ...sessionOfKey(false).me, roles } };
}

const everywhere: readonly Action[] = [
  ...(["create_flags", "change_project", "read_webhooks"] as const),
  ...(["change_webhooks", "change_environments"] as const),
];

describe("what a key can do", () => {
  it("is everything in its project", () => {
    const session = sessionOfKey(false);
    expect(everywhere.map((action) => whyNot(session, action))).toEqual(
      everywhere.map(() => undefined),
    );
    expect(whyNot(session, "change_states", staging)).toBeUndefined();
  });

  it("is not what only people do", () => {
    const session = sessionOfKey(false);
    expect(whyNot(session, "protect", production)).toContain("an API key cannot");
    expect(whyNot(session, "review", production)).toContain("an API key cannot");
  });

  it("is limited to its environment", () => {
    const session = sessionOfKey(true);
    expect(whyNot(session, "change_states", production)).toBeUndefined();
    expect(whyNot(session, "issue_keys", production)).toBeUndefined();
    expect(whyNot(session, "change_states", staging)).toContain("read this environment");
    expect(whyNot(session, "issue_keys", staging)).toContain("read this environment");
    expect(whyNot(session, "change_project")).toContain("only one environment");
    expect(whyNot(session, "change_project", production)).toContain("only one environment");
    expect(whyNot(session, "read_webhooks")).toContain("limited to its environment");
  });
});

describe("what a person can do", () => {
  it("is to read, with the role viewer", () => {
    const session = sessionOfPerson("viewer", "viewer", "viewer");
    expect(whyNot(session, "change_states", production)).toBe(
      "Needs the role editor in production.",
    );
    expect(whyNot(session, "create_flags")).toBe(
      "Needs the role editor in the project or in one of its environments.",
    );
    expect(whyNot(session, "change_project")).toBe("Needs the role editor in the whole project.");
    expect(whyNot(session, "change_webhooks")).toBe("Needs the role admin in the whole project.");
    expect(whyNot(session, "read_webhooks")).toBeUndefined();
    expect(whyNot(session, "issue_keys", production)).toBeUndefined();
  });

  it("is to change the environments of a role, and to create flags", () => {
    const session = sessionOfPerson("viewer", "viewer", "editor");
    expect(whyNot(session, "change_states", staging)).toBeUndefined();
    expect(whyNot(session, "change_states", production)).toBeDefined();
    expect(whyNot(session, "create_flags")).toBeUndefined();
    expect(whyNot(session, "change_project")).toBeDefined();
  });

  it("is to propose what reaches a protected environment, for an editor anywhere", () => {
    const session = sessionOfPerson("viewer", "viewer", "editor");
    const protection = { approvals: 1, self_approval: false, without_approval: [] };
    const guarded = { ...production, protected: protection };
    expect(whyNot(session, "change_states", guarded)).toBeUndefined();
    expect(whyNot(session, "change_project", guarded)).toBeUndefined();
    expect(whyNot(session, "protect", guarded)).toBe("Needs the role admin in production.");
    const viewer = sessionOfPerson("viewer", "viewer", "viewer");
    expect(whyNot(viewer, "change_states", guarded)).toBe(
      "Needs the role editor in the project or in one of its environments.",
    );
  });

  it("is everything in the project with the role admin", () => {
    const session = sessionOfPerson("admin", "admin", "admin");
    expect(everywhere.map((action) => whyNot(session, action))).toEqual(
      everywhere.map(() => undefined),
    );
  });
});
