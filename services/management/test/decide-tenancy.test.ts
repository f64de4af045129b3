import { defaultPlans } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import type { ChangeContext } from "../src/access/change-context.ts";
import { decideCreateEnvironment } from "../src/environments/environment.ts";
import { decideInitialStates } from "../src/flags/environment-fills.ts";
import {
  decideCreateOrganization,
  decideUpdateOrganization,
  type Organization,
} from "../src/organizations/organization.ts";
import { decideCreateProject } from "../src/projects/project.ts";

const now = new Date("2027-01-31T09:00:00.000Z");
const plans = defaultPlans;
let ids = 0;
const newId = () => `id-${++ids}`;
const context: ChangeContext = {
  actor: { id: "ada", email: "ada@example.com" },
  apiKeyId: null,
  cause: "manual",
  now,
  newId,
};
const anOrganization = (with_: Partial<Organization> = {}): Organization => ({
  id: "organization",
  name: "Acme",
  plan: "free",
  limits: plans.free ?? null,
  version: 7,
  createdAt: new Date(0),
  updatedAt: new Date(0),
  ...with_,
});

describe("an organization", () => {
  it("requires a configured plan", () => {
    const circumstances = { plans: { small: plans.free }, now, newId } as never;
    expect(decideCreateOrganization({ name: "Acme", plan: "free" }, circumstances)).toEqual({
      rejected: "VALIDATION_001",
      message: '/plan must be one of "small"',
    });
  });

  it("can be renamed if its plan is no longer configured", () => {
    const current = { organization: anOrganization({ plan: "old" }), projectCount: 2 };
    const decision = decideUpdateOrganization(current, { name: "New" }, { plans, now });
    expect(decision).toMatchObject({
      organization: { name: "New", plan: "old", version: 8, updatedAt: now },
      messages: [{ value: { limits: plans.free, project_count: 2 } }],
    });
  });

  it("accepts its own plan even if it is no longer configured, but no other such plan", () => {
    const current = { organization: anOrganization({ plan: "old" }), projectCount: 2 };
    const decide = (plan: string) => decideUpdateOrganization(current, { plan }, { plans, now });
    expect(decide("old")).toBe("unchanged");
    expect(decide("older")).toMatchObject({ rejected: "VALIDATION_001" });
  });

  it("has limits of 0 if its plan was removed before limits were recorded", () => {
    const organization = anOrganization({ plan: "old", limits: null });
    const current = { organization, projectCount: 2 };
    expect(decideUpdateOrganization(current, { name: "New" }, { plans, now })).toMatchObject({
      organization: { limits: { requests_per_month: 0, sse_connections: 0, projects: 0 } },
    });
  });

  it("records the current limits of its plan with every change", () => {
    const current = { organization: anOrganization(), projectCount: 2 };
    const larger = { free: { ...plans.pro, projects: 77 } };
    const decision = decideUpdateOrganization(current, { name: "New" }, {
      plans: larger,
      now,
    } as never);
    expect(decision).toMatchObject({
      organization: { limits: larger.free },
      messages: [{ value: { limits: larger.free } }],
    });
  });

  it("never decreases its update time, regardless of the replica's clock", () => {
    const later = new Date(now.getTime() + 5000);
    const current = { organization: anOrganization({ updatedAt: later }), projectCount: 0 };
    const decision = decideUpdateOrganization(current, { name: "New" }, { plans, now });
    expect(decision).toMatchObject({ organization: { updatedAt: later } });
  });

  it.each([{}, { name: "Acme" }, { plan: "free" }, { name: "Acme", plan: "free" }])(
    "is unchanged by %j",
    (request) => {
      const current = { organization: anOrganization(), projectCount: 0 };
      expect(decideUpdateOrganization(current, request, { plans, now })).toBe("unchanged");
    },
  );
});

describe("a project", () => {
  it.each<[string, number, boolean]>([
    ["free", 2, true],
    ["free", 3, false],
    ["free", 4, false],
    ["pro", 9, true],
    ["pro", 10, false],
    ["growth", 1_000_000, true],
    ["a plan that is no longer configured and allowed three", 2, true],
    ["a plan that is no longer configured and allowed three", 3, false],
  ])("on the plan %s with %i other projects: %s", (plan, projectCount, may) => {
    const current = { organization: anOrganization({ plan }), projectCount };
    const decision = decideCreateProject(current, { name: "Web" }, { plans, context });
    expect("rejected" in decision ? decision.rejected : undefined).toBe(
      may ? undefined : "RATE_001",
    );
  });

  it("uses the singular for a limit of one", () => {
    const current = { organization: anOrganization({ plan: "free" }), projectCount: 1 };
    const one = { free: { requests_per_month: null, sse_connections: null, projects: 1 } };
    expect(decideCreateProject(current, { name: "Web" }, { plans: one, context })).toMatchObject({
      message: expect.stringContaining('"free" allows 1 project, and'),
    });
  });

  it("increments its organization's version and project count", () => {
    const current = { organization: anOrganization(), projectCount: 2 };
    const decision = decideCreateProject(current, { name: "Web" }, { plans, context });
    expect(decision).toMatchObject({
      organization: { version: 8, updatedAt: now },
      messages: [
        { address: { kind: "organization" }, value: { version: 8, project_count: 3 } },
        { address: { kind: "project" } },
        { value: { name: "development" } },
        { value: { name: "staging" } },
        { value: { name: "production" } },
      ],
    });
  });
});

describe("an environment", () => {
  it("is limited to fifty per project", () => {
    const project = { id: "project", organizationId: "organization" };
    const decide = (environmentCount: number) =>
      decideCreateEnvironment({ project, environmentCount }, { name: "preview" }, context);
    expect(decide(49)).toMatchObject({ environment: { name: "preview", createdAt: now } });
    expect(decide(50)).toMatchObject({ rejected: "CONFLICT_001" });
  });

  it("gives each flag a state with the flag's current version and the environment's creation time", () => {
    const createdAt = new Date("2027-01-31T08:59:00.000Z");
    const environment = { id: "preview", projectId: "project", createdAt };
    const flag = { organizationId: "organization", projectId: "project", createdAt: new Date(0) };
    const flags = [
      { ...flag, id: "flag", key: "checkout", version: 4 },
      { ...flag, id: "other", key: "search", version: 9 },
    ];
    const fill = { environment, createdBy: "ada" };
    const decision = decideInitialStates(fill, flags, { now, newId });
    const initial = {
      environmentId: "preview",
      enabled: false,
      rolloutPercentage: 100,
      targetingRules: [],
      updatedAt: createdAt,
    };
    expect(decision.states).toEqual([
      { ...initial, flagId: "flag", version: 4 },
      { ...initial, flagId: "other", version: 9 },
    ]);
    const entry = { changeType: "manual", changedBy: "ada", changedAt: createdAt };
    expect(decision.history).toMatchObject([
      { flagId: "flag", ...entry },
      { flagId: "other", ...entry },
    ]);
    const value = { environment_id: "preview", committed_at: now.toISOString() };
    expect(decision.messages).toMatchObject([
      { stream: "snapshot", value: { ...value, key: "checkout", version: 4 } },
      { stream: "snapshot", value: { ...value, key: "search", version: 9 } },
    ]);
  });
});
