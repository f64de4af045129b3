import { describe, expect, it } from "@jest/globals";
import type { Role } from "../src/api/schema.d.ts";
import { givesRoles, offeredProjects, offeredRoles, whyNotGive } from "../src/people/may-give.ts";
import type { OwnRoles } from "../src/people/people-queries.ts";

const subject = { user_id: "u" };

/** Returns the roles of a person in the organization, in the project Web, and in its two environments. */
const having = (
  organization: Role | null,
  project: Role | null = organization,
  [dev, prod]: readonly (Role | null)[] = [project, project],
): OwnRoles => ({
  ...{ id: "o", name: "Acme", user_id: "me", role: organization },
  projects: [
    {
      ...{ id: "web", name: "Web", role: project },
      environments: [
        { id: "dev", name: "development", role: dev ?? null, protected: false },
        { id: "prod", name: "production", role: prod ?? null, protected: false },
      ],
    },
  ],
});
const owner = having("owner");
const admin = having("admin");
const projectAdmin = having(null, "admin");
const devAdmin = having(null, "viewer", ["admin", "viewer"]);
const editor = having("editor");

const organization = { organization: "o" };
const web = { project: "web" };
const dev = { project: "web", environments: ["dev"] };
const both = { project: "web", environments: ["dev", "prod"] };
const upToAdmin = ["viewer", "editor", "approver", "admin"];

describe("the roles that a person may give", () => {
  it.each([
    ["an owner in the organization", owner, organization, [...upToAdmin, "owner"]],
    ["an owner in a project", owner, web, upToAdmin],
    ["an owner in an environment", owner, dev, ["editor", "approver", "admin"]],
    ["an admin in the organization", admin, organization, upToAdmin],
    ["an admin of a project in the organization", projectAdmin, organization, []],
    ["an admin of a project there", projectAdmin, web, upToAdmin],
    ["an admin of an environment in the project", devAdmin, web, []],
    ["an admin of an environment there", devAdmin, dev, ["editor", "approver", "admin"]],
    ["an admin of an environment in another one too", devAdmin, both, []],
    ["an editor", editor, web, []],
  ])("by %s", (_who, own, scope, roles) => {
    expect(offeredRoles(own, { subject, scope })).toEqual(roles);
  });

  it("to a group are those of an owner alone", () => {
    const asked = { subject: { group: "g" }, scope: web };
    expect(offeredRoles(owner, asked)).toEqual(upToAdmin);
    expect(offeredRoles(admin, asked)).toEqual([]);
  });

  it("come with the reason why others are missing", () => {
    expect(whyNotGive(admin, { subject, role: "owner", scope: organization })).toBe(
      "This needs the role owner in the whole organization; yours is admin.",
    );
    expect(whyNotGive(devAdmin, { subject, role: "editor", scope: both })).toBe(
      "This needs the role admin in production; yours is viewer.",
    );
    expect(whyNotGive(projectAdmin, { subject, role: "viewer", scope: { project: "x" } })).toBe(
      "This needs the role admin in the project; yours is none.",
    );
  });

  it("decide about a role in an environment that was deleted by the role in its project", () => {
    const scope = { project: "web", environments: ["gone"] };
    expect(whyNotGive(projectAdmin, { subject, role: "editor", scope })).toBeUndefined();
    expect(whyNotGive(devAdmin, { subject, role: "editor", scope })).toContain("admin");
  });

  it("exist in projects where the person is an admin, at least of one environment", () => {
    expect(offeredProjects(projectAdmin)).toMatchObject([{ id: "web", isWhole: true }]);
    expect(offeredProjects(devAdmin)).toMatchObject([{ id: "web", isWhole: false }]);
    expect(offeredProjects(editor)).toEqual([]);
    expect([owner, admin, projectAdmin, devAdmin, editor].map(givesRoles)).toEqual([
      ...[true, true, true, true],
      false,
    ]);
  });
});
