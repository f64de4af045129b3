import { z } from "zod";
import { Name } from "../name.ts";
import { PlanLimits } from "../plans.ts";
import { Protection, ProtectionInput } from "../protection.ts";
import { Description, Email, Id, IdParam, InstantOut, Limited } from "./fields.ts";
import { defineRoute } from "./route.ts";

/** Organizations, users, projects and environments. */
const PlanName = z.string().min(1).max(50);

export const Plan = z.strictObject({ name: z.string(), limits: PlanLimits });
export type Plan = z.infer<typeof Plan>;

export const Organization = z.strictObject({
  id: Id,
  name: z.string(),
  plan: z.string(),
  limits: PlanLimits,
  configuration_bytes: Limited.describe(
    "Bytes of the rules, splits and values of all flags in all environments, as JSON without spaces between tokens",
  ),
  created_at: InstantOut,
  updated_at: InstantOut,
});
export type Organization = z.infer<typeof Organization>;

export const UserKind = z
  .enum(["person", "service"])
  .describe("A service user never signs in. Its API keys are for programs, and admins issue them");
export type UserKind = z.infer<typeof UserKind>;

export const User = z.strictObject({
  id: Id,
  organization_id: Id,
  kind: UserKind,
  email: z.string(),
  name: z.string().nullable(),
  signs_in: z.boolean().describe("True if the user is linked to a person, who has signed in"),
  created_at: InstantOut,
});
export type User = z.infer<typeof User>;

const Caution = z
  .boolean()
  .describe("The dashboard asks for confirmation before it saves a change in this environment");
export const Environment = z.strictObject({
  id: Id,
  project_id: Id,
  name: z.string(),
  caution: Caution,
  protected: Protection.nullable().describe(
    "The protection: changes of what this environment answers need an approved change request. Null without one",
  ),
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
export const CreateUser = z.strictObject({
  email: Email,
  name: Name.optional(),
  kind: UserKind.optional().describe("`person` by default"),
});
export type CreateUser = z.infer<typeof CreateUser>;
export const UpdateUser = z.strictObject({ email: Email.optional(), name: Name.optional() });
export const CreateProject = z.strictObject({
  name: Name,
  environments: z.array(Name).min(1).max(50).optional(),
});
export const UpdateProject = z.strictObject({ name: Name.optional() });
export const CreateEnvironment = z.strictObject({ name: Name, caution: Caution.optional() });
export type CreateEnvironment = z.infer<typeof CreateEnvironment>;
/** Deletes a protected environment, or lowers its protection, without a change request. */
const BypassReason = Description.min(1).describe(
  "Why the protection is bypassed. The audit log contains it. Needs `admin` and a recent sign-in, or the operator's token",
);
export const UpdateEnvironment = z.strictObject({
  name: Name.optional(),
  caution: Caution.optional(),
  protected: ProtectionInput.nullable()
    .optional()
    .describe("Only for signed-in admins and the operator. To lower it is a change request"),
  bypass_reason: BypassReason.optional(),
});
export type UpdateEnvironment = z.infer<typeof UpdateEnvironment>;

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

/** Deletions cannot be undone, so the caller repeats the id. */
const Confirmation = z.strictObject({
  confirm: IdParam.describe("must be the id of the resource to delete"),
});
const deleted = (description: string) => ({ status: 204, description }) as const;

export const listPlans = defineRoute({
  ...operator,
  access: "operator_or_any_key",
  operationId: "listPlans",
  method: "GET",
  path: "/api/v1/plans",
  summary: "List the plans of this installation and their limits",
  description: "The operator configures the plans. `null` is no limit.",
  success: {
    status: 200,
    description: "All plans, in ascending order of requests per month",
    body: z.strictObject({ plans: z.array(Plan) }),
  },
});

export const createOrganization = defineRoute({
  ...operator,
  operationId: "createOrganization",
  method: "POST",
  path: organizations,
  summary: "Create an organization",
  description:
    "An organization owns users and projects. Its plan limits its requests, streams and projects.",
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
  description: "Organizations in the order of their creation, with their plans.",
  success: {
    status: 200,
    description: "All organizations",
    body: z.strictObject({ organizations: z.array(Organization) }),
  },
});

export const getOrganization = defineRoute({
  ...operator,
  access: "operator_or_session",
  operationId: "getOrganization",
  method: "GET",
  path: organization,
  params: OrganizationParams,
  summary: "Read an organization",
  description: "`plan` is the name of one of the configured plans.",
  success: { status: 200, description: "The organization", body: Organization },
});

export const updateOrganization = defineRoute({
  ...operator,
  access: "operator_or_session",
  operationId: "updateOrganization",
  method: "PATCH",
  alsoMethod: "PUT",
  path: organization,
  params: OrganizationParams,
  summary: "Rename an organization or move it to another plan",
  description: "A change of the plan reaches every edge within a second. No open stream is closed.",
  body: UpdateOrganization,
  example: { name: "Example Ltd", plan: "pro" },
  success: { status: 200, description: "The organization", body: Organization },
});

export const deleteOrganization = defineRoute({
  ...operator,
  operationId: "deleteOrganization",
  method: "DELETE",
  path: organization,
  params: OrganizationParams,
  query: Confirmation.extend({ bypass_reason: BypassReason.optional() }),
  summary: "Delete an organization with its users and projects",
  description:
    "Its API keys stop within a second, and their streams close. Flags, schedules, webhooks and deliveries end without events. Stored rows are removed in the background. The operator can still read the audit log of its projects. An organization with a protected environment needs `bypass_reason`.",
  success: deleted("The organization no longer exists"),
  errors: ["APPROVAL_001"],
});

export const createUser = defineRoute({
  ...operator,
  access: "operator_or_session",
  operationId: "createUser",
  method: "POST",
  path: `${organization}/users`,
  params: OrganizationParams,
  summary: "Create a user",
  description:
    "Changes are attributed to users. An e-mail address is unique in its organization, ignoring case.",
  body: CreateUser,
  example: { email: "grace@example.com", name: "Grace" },
  idempotent: true,
  success: { status: 201, description: "The user", body: User },
  errors: ["CONFLICT_001"],
});

export const listUsers = defineRoute({
  ...operator,
  access: "operator_or_session",
  operationId: "listUsers",
  method: "GET",
  path: `${organization}/users`,
  params: OrganizationParams,
  summary: "List the users of an organization",
  description: "API keys are issued to users, and changes are attributed to them.",
  success: {
    status: 200,
    description: "The users of the organization",
    body: z.strictObject({ users: z.array(User) }),
  },
});

export const getUser = defineRoute({
  ...operator,
  access: "operator_or_session",
  operationId: "getUser",
  method: "GET",
  path: `${organization}/users/:userId`,
  params: UserParams,
  summary: "Read a user",
  description: "An e-mail address is unique within its organization, regardless of case.",
  success: { status: 200, description: "The user", body: User },
});

export const updateUser = defineRoute({
  ...operator,
  access: "operator_or_session",
  operationId: "updateUser",
  method: "PATCH",
  alsoMethod: "PUT",
  path: `${organization}/users/:userId`,
  params: UserParams,
  summary: "Change the name or the e-mail address of a user",
  description: "The id stays the same, so earlier changes and API keys still belong to the user.",
  body: UpdateUser,
  example: { name: "Grace Hopper" },
  success: { status: 200, description: "The user", body: User },
  errors: ["CONFLICT_001"],
});

export const deleteUser = defineRoute({
  ...operator,
  access: "operator_or_session",
  operationId: "deleteUser",
  method: "DELETE",
  path: `${organization}/users/:userId`,
  params: UserParams,
  query: Confirmation.extend({ erase: z.boolean().optional() }),
  summary: "Delete a user and revoke the API keys of the user",
  description:
    "The history and the audit log keep the id of the user. With `erase=true`, a pseudonym such as `erased-9f86d081884c` replaces the e-mail address in the audit log and in stored webhook payloads, and the name is removed from the audit log, in the background. It also applies to a user that is already deleted, and can be repeated. An organization keeps at least one owner who can sign in (409).",
  success: deleted("The user no longer exists"),
  errors: ["CONFLICT_001"],
});

export const createProject = defineRoute({
  ...operator,
  access: "operator_or_session",
  operationId: "createProject",
  method: "POST",
  path: `${organization}/projects`,
  params: OrganizationParams,
  summary: "Create a project with its environments",
  description:
    "Without `environments`, the project has `development`, `staging` and `production`. An environment with the name `production` has `caution: true`. The plan limits the number of projects of an organization; a project beyond it is rejected with 429.",
  body: CreateProject,
  example: { name: "Web shop", environments: ["development", "production"] },
  idempotent: true,
  success: { status: 201, description: "The project", body: Project },
  errors: ["CONFLICT_001", "RATE_001"],
});

export const listProjects = defineRoute({
  ...operator,
  access: "operator_or_session",
  operationId: "listProjects",
  method: "GET",
  path: `${organization}/projects`,
  params: OrganizationParams,
  summary: "List the projects of an organization",
  description: "Projects in the order of their creation, with their environments.",
  success: {
    status: 200,
    description: "The projects of the organization",
    body: z.strictObject({ projects: z.array(Project) }),
  },
});

export const getProject = defineRoute({
  ...operator,
  access: "operator_or_session",
  operationId: "getProject",
  method: "GET",
  path: `${organization}/projects/:projectId`,
  params: ProjectOfOrganizationParams,
  summary: "Read a project with its environments",
  description: "A project has a set of flags. Each flag has a state in each of the environments.",
  success: { status: 200, description: "The project", body: Project },
});

export const updateProject = defineRoute({
  ...operator,
  access: "operator_or_session",
  operationId: "updateProject",
  method: "PATCH",
  alsoMethod: "PUT",
  path: `${organization}/projects/:projectId`,
  params: ProjectOfOrganizationParams,
  summary: "Rename a project",
  description: "The id of the project and everything in the project stay the same.",
  body: UpdateProject,
  example: { name: "Online shop" },
  success: { status: 200, description: "The project", body: Project },
  errors: ["CONFLICT_001"],
});

export const deleteProject = defineRoute({
  ...operator,
  access: "operator_or_session",
  operationId: "deleteProject",
  method: "DELETE",
  path: `${organization}/projects/:projectId`,
  params: ProjectOfOrganizationParams,
  query: Confirmation.extend({ bypass_reason: BypassReason.optional() }),
  summary: "Delete a project with its environments and flags",
  description:
    "Its API keys stop within a second, and their streams close. Flags, schedules, webhooks and deliveries end without events. Stored rows are removed in the background. The operator can still read the audit log of the project. A project with a protected environment needs `bypass_reason`.",
  success: deleted("The project no longer exists"),
  errors: ["APPROVAL_001"],
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
  description:
    "Environments in the order of their creation. Their ids are the `envId` of the routes for flags.",
  success: {
    status: 200,
    description: "The environments of the project",
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
  description: "An environment has its own API keys, and its own state of each flag.",
  success: { status: 200, description: "The environment", body: Environment },
});

export const updateEnvironment = defineRoute({
  ...projectScoped,
  operationId: "updateEnvironment",
  protectable: true,
  method: "PATCH",
  alsoMethod: "PUT",
  path: `${environments}/:environmentId`,
  params: EnvironmentParams,
  summary: "Rename an environment, or change its mark",
  description:
    "The id, the API keys and the states of flags stay the same. Only the operator can change `name`. A server key without `environment_only` can change `caution`. To raise the protection needs `admin` and a recent sign-in, or the operator's token; to lower it, a change request.",
  body: UpdateEnvironment,
  example: { caution: true },
  success: { status: 200, description: "The environment", body: Environment },
  errors: ["AUTH_003", "CONFLICT_001"],
});

export const deleteEnvironment = defineRoute({
  ...projectScoped,
  access: "operator_or_session",
  operationId: "deleteEnvironment",
  method: "DELETE",
  path: `${environments}/:environmentId`,
  params: EnvironmentParams,
  query: Confirmation.extend({ bypass_reason: BypassReason.optional() }),
  summary: "Delete an environment with its API keys and the states of flags in it",
  description:
    "Its API keys stop within a second, and their streams close. Schedules in it are cancelled. Stored rows are removed in the background. A protected environment needs `bypass_reason`.",
  success: deleted("The environment no longer exists"),
  errors: ["APPROVAL_001"],
});
