import { describe, expect, it } from "@jest/globals";
import type { SignedIn } from "../src/session/person.ts";
import { withProjectsOf } from "../src/session/receive-person.ts";

function signedInTo(organizations: Record<string, string[]>): SignedIn {
  const at = "2027-01-31T09:30:00.000Z";
  return {
    person: { name: null, email: "ada@example.com" },
    organizations: Object.entries(organizations).map(([id, projects]) => ({
      ...{ id, name: id, user_id: "ada", role: null },
      projects: projects.map((project) => ({
        ...{ id: project, name: project, role: "viewer" as const, environments: [] },
      })),
    })),
    ...{ signed_in_by: "passkey", signed_in_at: at, confirmed_at: at, expires_at: at },
  };
}

describe("the projects of a person in a tab", () => {
  it("begin with the first one", () =>
    expect(
      withProjectsOf(signedInTo({ a: ["1", "2"] }), { tokens: [], current: undefined }),
    ).toEqual({ tokens: ["person_1", "person_2"], current: "person_1" }));

  it("replace former ones, and leave server keys and the current project", () => {
    const stored = { tokens: ["hs_key", "person_1", "person_3"], current: "person_1" };
    expect(withProjectsOf(signedInTo({ a: ["1", "2"] }), stored)).toEqual({
      tokens: ["hs_key", "person_1", "person_2"],
      current: "person_1",
    });
  });

  it("begin with another one if the current one is gone", () => {
    const stored = { tokens: ["person_3"], current: "person_3" };
    expect(withProjectsOf(signedInTo({ a: ["1"] }), stored).current).toBe("person_1");
  });

  it("begin with those of an organization that the person has joined", () => {
    const stored = { tokens: ["person_1"], current: "person_1" };
    expect(withProjectsOf(signedInTo({ a: ["1"], b: ["2"] }), stored, "b").current).toBe(
      "person_2",
    );
  });
});
