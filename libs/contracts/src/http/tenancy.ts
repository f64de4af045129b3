import { z } from "zod";
import { PlanLimits } from "../plans.ts";
import { Email, Id, IdParam, InstantOut, Name } from "./fields.ts";
import { defineRoute } from "./route.ts";

/** Organizations, users, projects and environments: who a flag belongs to. */
const PlanName = z.string().min(1).max(50);

export const Organization = z.strictObject({
  id: Id,
  name: z.string(),
  plan: z.string(),
  limits: PlanLimits,
  created_at: InstantOut,
  updated_at: InstantOut,
});
export type Organization = z.infer<typeof Organization>;

export const User = z.strictObject({
  id: Id,
  organization_id: Id,
  email: z.string(),
  name: z.string().nullable(),
  created_at: InstantOut,
});
export type User = z.infer<typeof User>;

export const Environment = z.strictObject({
  id: Id,
  project_id: Id,
  name: z.string(),
  created_at: InstantOut,
});
export type Environment = z.infer<typeof Environment>;

export const Project = z.strictObject({
  id: Id,
  organization_id: Id,
  name: z.string(),
  environments: z.array(Environment),
  created_at: InstantOut,
});
export type Project = z.infer<typeof Project>;

export const CreateOrganization = z.strictObject({ name: Name, plan: PlanName });
export const UpdateOrganization = z.strictObject({
  name: Name.optional(),
  plan: PlanName.optional(),
});
export const CreateUser = z.strictObject({ email: Email, name: Name.optional() });
export const CreateProject = z.strictObject({
  name: Name,
  environments: z.array(Name).min(1).max(50).optional(),
});
export const CreateEnvironment = z.strictObject({ name: Name });

const organizations = "/api/v1/organizations";
const organization = `${organizations}/:organizationId`;
const environments = "/api/v1/projects/:projectId/environments";
const OrganizationParams = z.strictObject({ organizationId: IdParam });
const UserParams = z.strictObject({ organizationId: IdParam, userId: IdParam });
const ProjectOfOrganizationParams = z.strictObject({
  organizationId: IdParam,
  projectId: IdParam,
});
const ProjectParams = z.strictObject({ projectId: IdParam });
const EnvironmentParams = z.strictObject({ projectId: IdParam, environmentId: IdParam });
const operator = { service: "management", access: "operator", tag: "Organizations" } as const;

export const createOrganization = defineRoute({
  ...operator,
  operationId: "createOrganization",
  method: "POST",
  path: organizations,
  summary: "Create an organization",
  body: CreateOrganization,
  example: { name: "Example Ltd", plan: "pro" },
  idempotent: true,
  success: { status: 201, description: "The organization", body: Organization },
});

export const listOrganizations = defineRoute({
  ...operator,
  operationId: "listOrganizations",
  method: "GET",
  path: organizations,
  summary: "List all organizations",
  success: {
    status: 200,
    description: "All organizations",
    body: z.strictObject({ organizations: z.array(Organization) }),
  },
});

export const getOrganization = defineRoute({
  ...operator,
  operationId: "getOrganization",
  method: "GET",
  path: organization,
  params: OrganizationParams,
  summary: "Read an organization",
  success: { status: 200, description: "The organization", body: Organization },
});

export const updateOrganization = defineRoute({
  ...operator,
  operationId: "updateOrganization",
  method: "PATCH",
  alsoMethod: "PUT",
  path: organization,
  params: OrganizationParams,
  summary: "Rename an organization or move it to another plan",
  body: UpdateOrganization,
  example: { name: "Example Ltd", plan: "pro" },
  success: { status: 200, description: "The organization", body: Organization },
});

export const createUser = defineRoute({
  ...operator,
  operationId: "createUser",
  method: "POST",
  path: `${organization}/users`,
  params: OrganizationParams,
  summary: "Create a user, to whom changes are attributed",
  body: CreateUser,
  example: { email: "grace@example.com", name: "Grace" },
  idempotent: true,
  success: { status: 201, description: "The user", body: User },
});

export const listUsers = defineRoute({
  ...operator,
  operationId: "listUsers",
  method: "GET",
  path: `${organization}/users`,
  params: OrganizationParams,
  summary: "List the users of an organization",
  success: {
    status: 200,
    description: "Its users",
    body: z.strictObject({ users: z.array(User) }),
  },
});

export const getUser = defineRoute({
  ...operator,
  operationId: "getUser",
  method: "GET",
  path: `${organization}/users/:userId`,
  params: UserParams,
  summary: "Read a user",
  success: { status: 200, description: "The user", body: User },
});

export const createProject = defineRoute({
  ...operator,
  operationId: "createProject",
  method: "POST",
  path: `${organization}/projects`,
  params: OrganizationParams,
  summary: "Create a project with its environments",
  description:
    "Without `environments` the project gets `development`, `staging` and `production`. The plan limits how many projects an organization has; over it the answer is 429.",
  body: CreateProject,
  example: { name: "Web shop", environments: ["development", "production"] },
  idempotent: true,
  success: { status: 201, description: "The project", body: Project },
  errors: ["CONFLICT_001", "RATE_001"],
});

export const listProjects = defineRoute({
  ...operator,
  operationId: "listProjects",
  method: "GET",
  path: `${organization}/projects`,
  params: OrganizationParams,
  summary: "List the projects of an organization",
  success: {
    status: 200,
    description: "Its projects",
    body: z.strictObject({ projects: z.array(Project) }),
  },
});

export const getProject = defineRoute({
  ...operator,
  operationId: "getProject",
  method: "GET",
  path: `${organization}/projects/:projectId`,
  params: ProjectOfOrganizationParams,
  summary: "Read a project with its environments",
  success: { status: 200, description: "The project", body: Project },
});

const projectScoped = {
  service: "management",
  access: "operator_or_server_key",
  tag: "Environments",
} as const;

export const createEnvironment = defineRoute({
  ...projectScoped,
  operationId: "createEnvironment",
  method: "POST",
  path: environments,
  params: ProjectParams,
  summary: "Add an environment to a project",
  description:
    "Every flag of the project has a state in the new environment: disabled, rollout 100, no rules. The SDK endpoints return 200 flags immediately, and up to 1,000 more each second. A project has at most 50 environments.",
  body: CreateEnvironment,
  example: { name: "preview" },
  idempotent: true,
  success: { status: 201, description: "The environment", body: Environment },
  errors: ["CONFLICT_001"],
});

export const listEnvironments = defineRoute({
  ...projectScoped,
  operationId: "listEnvironments",
  method: "GET",
  path: environments,
  params: ProjectParams,
  summary: "List the environments of a project",
  success: {
    status: 200,
    description: "Its environments",
    body: z.strictObject({ environments: z.array(Environment) }),
  },
});

export const getEnvironment = defineRoute({
  ...projectScoped,
  operationId: "getEnvironment",
  method: "GET",
  path: `${environments}/:environmentId`,
  params: EnvironmentParams,
  summary: "Read an environment",
  success: { status: 200, description: "The environment", body: Environment },
});
