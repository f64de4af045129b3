import { defaultPlans, type PlanLimits } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import type { ChangeContext } from "../../src/access/change-context.ts";
import { decideInitialStates } from "../../src/flags/environment-fills.ts";
import { decideCreateEnvironment } from "../../src/tenancy/environment.ts";
import {
  decideCreateOrganization,
  decideUpdateOrganization,
  type Organization,
} from "../../src/tenancy/organization.ts";
import { decideCreateProject } from "../../src/tenancy/project.ts";
import { booleanFlag } from "../flags/boolean-flag.ts";

const now = new Date("2027-01-31T09:00:00.000Z");
const plans = defaultPlans as Record<"free" | "pro" | "growth", PlanLimits>;
let ids = 0;
const newId = () => `id-${++ids}`;
const context: ChangeContext = {
  actor: { id: "ada", email: "ada@example.com" },
  apiKeyId: null,
  via: "operator",
  cause: "manual",
  now,
  newId,
};
const anOrganization = (with_: Partial<Organization> = {}): Organization => ({
  id: "organization",
  name: "Acme",
  plan: "free",
  limits: plans.free,
  configurationBytes: 0,
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

  it("has the limits of its new plan", () => {
    const current = { organization: anOrganization(), projectCount: 2 };
    expect(decideUpdateOrganization(current, { plan: "pro" }, { plans, now })).toMatchObject({
      organization: { plan: "pro", limits: plans.pro, version: 8, updatedAt: now },
      messages: [{ value: { plan: "pro", project_count: 2 } }],
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
  it.each<[keyof typeof plans, number, boolean]>([
    ["free", 2, true],
    ["free", 3, false],
    ["free", 4, false],
    ["pro", 9, true],
    ["pro", 10, false],
    ["growth", 1_000_000, true],
  ])("on the plan %s with %i other projects: %s", (plan, projectCount, may) => {
    const current = { organization: anOrganization({ plan, limits: plans[plan] }), projectCount };
    const decision = decideCreateProject(current, { name: "Web" }, context);
    expect("rejected" in decision ? decision.rejected : undefined).toBe(
      may ? undefined : "RATE_001",
    );
  });

  it("uses the singular for a limit of one", () => {
    const limits = { ...plans.free, projects: 1 };
    const current = { organization: anOrganization({ limits }), projectCount: 1 };
    expect(decideCreateProject(current, { name: "Web" }, context)).toMatchObject({
      message: expect.stringContaining('"free" allows 1 project, and'),
    });
  });

  it("increments its organization's version and project count", () => {
    const current = { organization: anOrganization(), projectCount: 2 };
    const decision = decideCreateProject(current, { name: "Web" }, context);
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
    const flag = {
      ...{ organizationId: "organization", projectId: "project", createdAt: new Date(0) },
      ...booleanFlag,
    };
    const flags = [
      { ...flag, id: "flag", key: "checkout", version: 4 },
      { ...flag, id: "other", key: "search", version: 9 },
    ];
    const fill = { environment, createdBy: "ada" };
    const decision = decideInitialStates(fill, flags, { now, newId });
    const initial = {
      environmentId: "preview",
      content: { enabled: false, rollout_percentage: 100, targeting_rules: [] },
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
