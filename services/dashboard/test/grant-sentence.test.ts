import { describe, expect, it } from "@jest/globals";
import type { Grant, Role } from "../src/api/schema.d.ts";
import { grantSentence, scopeText } from "../src/people/grant-sentence.ts";

const projects = [
  {
    id: "web",
    name: "Web",
    environments: [
      { id: "dev", name: "development" },
      { id: "stage", name: "staging" },
      { id: "prod", name: "production" },
    ],
  },
  {
    id: "big",
    name: "Big",
    environments: Array.from({ length: 6 }, (_, index) => ({ id: `e${index}`, name: `e${index}` })),
  },
];
const organization = { organization: "o" };

const cases: [role: Role, scope: Grant["scope"], sentence: string][] = [
  ["viewer", organization, "May view the organization"],
  ["editor", organization, "May change flags in the organization"],
  ["approver", organization, "May change flags and approve change requests in the organization"],
  [
    "admin",
    organization,
    "May change flags and manage environments, webhooks, service users and roles in the organization",
  ],
  [
    "owner",
    organization,
    "May do everything, such as managing people and projects, in the organization",
  ],
  ["viewer", { project: "web" }, "May view Web"],
  ["editor", { project: "web" }, "May change flags in Web"],
  ["approver", { project: "web" }, "May change flags and approve change requests in Web"],
  [
    "admin",
    { project: "web" },
    "May change flags and manage environments, webhooks and roles in Web",
  ],
  ["viewer", { project: "web", environments: ["dev"] }, "May view Web"],
  [
    "editor",
    { project: "web", environments: ["dev", "stage"] },
    "May change flags in development and staging of Web, and view production",
  ],
  [
    "approver",
    { project: "web", environments: ["prod"] },
    "May change flags and approve change requests in production of Web, and view development and staging",
  ],
  [
    "admin",
    { project: "web", environments: ["dev"] },
    "May change flags and manage roles in development of Web, and view staging and production",
  ],
  [
    "editor",
    { project: "web", environments: ["dev", "stage", "prod"] },
    "May change flags in development, staging and production of Web, and view the rest of the project",
  ],
  [
    "editor",
    { project: "big", environments: ["e0"] },
    "May change flags in e0 of Big, and view the other 5 environments",
  ],
  ["editor", { project: "hidden" }, "May change flags in a project that you cannot view (hidden)"],
  [
    "editor",
    { project: "hidden", environments: ["a", "b"] },
    "May change flags in 2 environments of a project that you cannot view (hidden), and view the rest of the project",
  ],
  [
    "editor",
    { project: "web", environments: ["dev", "gone"] },
    "May change flags in development and one deleted environment of Web, and view staging and production",
  ],
];

describe("the sentence about a role", () => {
  it.each(cases)("of %s in %j is: %s", (role, scope, sentence) => {
    expect(grantSentence({ role, scope }, projects)).toBe(sentence);
  });

  it("names the scope alone, for the audit log", () => {
    expect(scopeText(organization, projects)).toBe("the organization");
    expect(scopeText({ project: "web", environments: ["prod"] }, projects)).toBe(
      "production of Web",
    );
  });
});
