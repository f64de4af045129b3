import type { GrantedRole, Role } from "@halyard/contracts";
import { rightsOfKey, roleAnywhere, roleAt, roleWithin } from "@halyard/people";
import { describe, expect, it } from "@jest/globals";

const shop = "project-shop";
const blog = "project-blog";
const staging = "staging";
const production = "production";
const inOrganization = (role: Role): GrantedRole => ({ role });
const inProject = (role: Role): GrantedRole => ({ role, project_id: shop });
const inStaging = (role: Role): GrantedRole => ({
  role,
  project_id: shop,
  environment_ids: [staging],
});

describe("the role at a place", () => {
  it("is the role of the organization everywhere", () => {
    const grants = [inOrganization("editor")];
    expect(roleAt(grants, {})).toBe("editor");
    expect(roleAt(grants, { projectId: blog, environmentId: production })).toBe("editor");
  });

  it("is the role of a project there only", () => {
    const grants = [inProject("admin")];
    expect(roleAt(grants, { projectId: shop })).toBe("admin");
    expect(roleAt(grants, { projectId: blog })).toBeUndefined();
    expect(roleAt(grants, {})).toBeUndefined();
  });

  it("is viewer in the rest of the project of an environment", () => {
    const grants = [inStaging("approver")];
    expect(roleAt(grants, { projectId: shop, environmentId: staging })).toBe("approver");
    expect(roleAt(grants, { projectId: shop, environmentId: production })).toBe("viewer");
    expect(roleAt(grants, { projectId: shop })).toBe("viewer");
    expect(roleWithin(grants, shop)).toBe("approver");
    expect(roleWithin(grants, blog)).toBeUndefined();
  });

  it("is the highest of several", () => {
    const grants = [inStaging("admin"), inOrganization("viewer"), inProject("editor")];
    expect(roleAt(grants, { projectId: shop, environmentId: production })).toBe("editor");
    expect(roleAnywhere(grants)).toBe("admin");
  });
});

describe("the role of a server key", () => {
  const place = { projectId: shop, environmentId: production };

  it("is that of its scope for a user who never had a role", () => {
    expect(rightsOfKey("write", undefined).at(place)).toBe("admin");
    expect(rightsOfKey("read", { governed: false, grants: [] }).at(place)).toBe("viewer");
  });

  it("is at most that of its user", () => {
    const viewer = { governed: true, grants: [inStaging("editor")] };
    expect(rightsOfKey("write", viewer).at(place)).toBe("viewer");
    const owner = { governed: true, grants: [inOrganization("owner")] };
    expect(rightsOfKey("write", owner).at(place)).toBe("admin");
    expect(rightsOfKey("propose", owner).at(place)).toBe("viewer");
  });

  it("is none after the last role was withdrawn", () => {
    expect(rightsOfKey("write", { governed: true, grants: [] }).at(place)).toBeUndefined();
  });
});
