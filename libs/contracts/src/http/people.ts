import { z } from "zod";
import { Name } from "../name.ts";
import { Role, SignInMethod } from "../people.ts";
import { exampleIds } from "./example-ids.ts";
import { Email, Id, IdParam, InstantOut } from "./fields.ts";
import { defineRoute } from "./route.ts";
import { User } from "./tenancy.ts";

/** People: sessions, sign-in links, invitations and roles. */
const organization = "/api/v1/organizations/:organizationId";
const OrganizationParams = z.strictObject({ organizationId: IdParam });
const signedIn = { service: "management", access: "session", tag: "People" } as const;
const byPeople = { service: "management", access: "operator_or_session", tag: "People" } as const;

/** Where a role counts: the organization, a project, or some environments of a project. */
const Scope = z
  .union([
    z.strictObject({ organization: IdParam }),
    z.strictObject({
      project: IdParam,
      environments: z
        .array(IdParam)
        .min(1)
        .max(50)
        .optional()
        .describe("The role counts in these environments, and `viewer` in the rest of the project"),
    }),
  ])
  .describe("Where the role counts: the organization, or a project of the organization");
const Subject = z
  .union([
    z.strictObject({ user_id: IdParam }),
    z.strictObject({ group: z.string().min(1).max(200) }),
  ])
  .describe("A user, or everybody with this value in the provider's claim of groups");

export const CreateGrant = z.strictObject({ subject: Subject, role: Role, scope: Scope });
export type CreateGrant = z.infer<typeof CreateGrant>;

export const Grant = z.strictObject({
  id: Id,
  subject: z.union([z.strictObject({ user_id: Id }), z.strictObject({ group: z.string() })]),
  role: Role,
  scope: z.union([
    z.strictObject({ organization: Id }),
    z.strictObject({ project: Id, environments: z.array(Id).optional() }),
  ]),
  created_at: InstantOut,
});
export type Grant = z.infer<typeof Grant>;

const RoleOrNone = Role.nullable().describe("The highest role here; null without one");

const EnvironmentRole = z.strictObject({
  id: Id,
  name: z.string(),
  role: RoleOrNone,
  protected: z.boolean(),
});
const ProjectRole = z.strictObject({
  id: Id,
  name: z.string(),
  role: RoleOrNone.describe("The highest role in the whole project; null without one"),
  environments: z.array(EnvironmentRole),
});
export const SignedIn = z.strictObject({
  person: z.strictObject({ name: z.string().nullable(), email: z.string() }),
  organizations: z.array(
    z.strictObject({
      id: Id,
      name: z.string(),
      user_id: Id,
      role: RoleOrNone.describe("The highest role in the whole organization; null without one"),
      projects: z.array(ProjectRole),
    }),
  ),
  signed_in_by: SignInMethod,
  signed_in_at: InstantOut,
  confirmed_at: InstantOut.describe("The sign-in, or the last confirmation since then"),
  expires_at: InstantOut,
});
export type SignedIn = z.infer<typeof SignedIn>;

export const getSession = defineRoute({
  ...signedIn,
  operationId: "getSession",
  method: "GET",
  path: "/api/v1/session",
  summary: "Read the session, and the roles of the signed-in person",
  description: "Contains only organizations and projects in which the person has a role.",
  success: { status: 200, description: "The session", body: SignedIn },
});

const Session = z.strictObject({
  id: Id,
  current: z.boolean().describe("The session of this request"),
  signed_in_by: SignInMethod,
  signed_in_at: InstantOut,
  expires_at: InstantOut,
  address: z.string(),
  user_agent: z.string(),
});
export type Session = z.infer<typeof Session>;

export const listSessions = defineRoute({
  ...signedIn,
  operationId: "listSessions",
  method: "GET",
  path: "/api/v1/sessions",
  summary: "List one's own sessions",
  description: "Newest first, with the address and the browser of each sign-in.",
  success: {
    status: 200,
    description: "The sessions of the person",
    body: z.strictObject({ sessions: z.array(Session) }),
  },
});

export const endSessions = defineRoute({
  ...signedIn,
  operationId: "endSessions",
  method: "DELETE",
  path: "/api/v1/sessions",
  summary: "Sign out everywhere, or end one session",
  description:
    "Ends all sessions of the person, or the one in `id`, on every service within a second.",
  query: z.strictObject({ id: IdParam.optional() }),
  success: { status: 204, description: "The sessions have ended" },
});

const Passkey = z.strictObject({
  id: z.string(),
  name: z.string(),
  created_at: InstantOut,
  last_used_at: InstantOut.nullable(),
});
export type Passkey = z.infer<typeof Passkey>;

export const listPasskeys = defineRoute({
  ...signedIn,
  operationId: "listPasskeys",
  method: "GET",
  path: "/api/v1/passkeys",
  summary: "List one's own passkeys",
  description: "A passkey is registered in the dashboard.",
  success: {
    status: 200,
    description: "The passkeys of the person",
    body: z.strictObject({ passkeys: z.array(Passkey) }),
  },
});

export const deletePasskey = defineRoute({
  ...signedIn,
  operationId: "deletePasskey",
  method: "DELETE",
  path: "/api/v1/passkeys/:passkeyId",
  params: z.strictObject({ passkeyId: z.string().regex(/^[A-Za-z0-9_-]{1,1400}$/) }),
  summary: "Remove a passkey",
  description: "Removes a passkey of the signed-in person. It no longer signs in. Sessions stay.",
  success: { status: 204, description: "The passkey is removed" },
});

export const createSignInLink = defineRoute({
  service: "management",
  access: "operator",
  tag: "People",
  operationId: "createSignInLink",
  method: "POST",
  path: `${organization}/sign-in-links`,
  params: OrganizationParams,
  summary: "Create a link that signs in a user",
  description:
    "For the first owner, and for emergencies. The link works once, for 5 minutes. `SIGN_IN_BY_OPERATOR=off` ends it.",
  body: z.strictObject({ user_id: IdParam }),
  example: { user_id: exampleIds.userId },
  carriesKey: true,
  success: {
    status: 201,
    description: "The link",
    body: z.strictObject({ url: z.string(), expires_at: InstantOut }),
  },
});

export const CreateInvitation = z.strictObject({
  email: Email,
  name: Name.optional(),
  role: Role,
  scope: Scope.optional(),
});
export type CreateInvitation = z.infer<typeof CreateInvitation>;
const Invitation = z.strictObject({
  id: Id,
  user: User,
  created_at: InstantOut,
  expires_at: InstantOut,
});
export type Invitation = z.infer<typeof Invitation>;

export const invite = defineRoute({
  ...byPeople,
  operationId: "invite",
  method: "POST",
  path: `${organization}/invitations`,
  params: OrganizationParams,
  summary: "Invite a person",
  description:
    "Creates the user if there is none with this address, and grants the role, by default in the organization. Only this response contains the link. It works once, within 24 hours.",
  body: CreateInvitation,
  example: { email: "grace@example.com", name: "Grace", role: "editor" },
  carriesKey: true,
  success: {
    status: 201,
    description: "The invitation with its link",
    body: Invitation.extend({ url: z.string() }),
  },
  errors: ["CONFLICT_001"],
});

export const listInvitations = defineRoute({
  ...byPeople,
  operationId: "listInvitations",
  method: "GET",
  path: `${organization}/invitations`,
  params: OrganizationParams,
  summary: "List the open invitations of an organization",
  description: "Newest first, without the links.",
  success: {
    status: 200,
    description: "The open invitations",
    body: z.strictObject({ invitations: z.array(Invitation) }),
  },
});

export const withdrawInvitation = defineRoute({
  ...byPeople,
  operationId: "withdrawInvitation",
  method: "DELETE",
  path: `${organization}/invitations/:invitationId`,
  params: z.strictObject({ organizationId: IdParam, invitationId: IdParam }),
  summary: "Withdraw an invitation",
  description: "The link no longer works. The user and the role stay.",
  success: { status: 204, description: "The invitation is withdrawn" },
});

export const acceptInvitation = defineRoute({
  ...signedIn,
  operationId: "acceptInvitation",
  method: "POST",
  path: "/api/v1/invitations/accept",
  summary: "Accept an invitation while signed in",
  description:
    "The signed-in person joins the organization. A person without an account follows the link instead.",
  body: z.strictObject({ code: z.string().regex(/^[A-Za-z0-9_-]{43}$/) }),
  example: { code: "N3vqYc0d5Rz4mXW1b2u7kQeT9sLhJaP6oGfDiKtVyBw" },
  success: {
    status: 200,
    description: "The organization that the person joined",
    body: z.strictObject({ organization_id: Id, user_id: Id }),
  },
  errors: ["CONFLICT_001"],
});

export const createGrant = defineRoute({
  ...byPeople,
  operationId: "createGrant",
  method: "POST",
  path: `${organization}/grants`,
  params: OrganizationParams,
  summary: "Give a role to a user or a group",
  description:
    "The highest role of a user counts. A caller cannot give a higher role than its own. From the first grant on, roles also bound the server keys of the user. The operator may give roles too.",
  body: CreateGrant,
  example: {
    subject: { user_id: exampleIds.userId },
    role: "editor",
    scope: { project: exampleIds.projectId, environments: [exampleIds.environmentId] },
  },
  idempotent: true,
  success: { status: 201, description: "The grant", body: Grant },
  errors: ["CONFLICT_001"],
});

export const listGrants = defineRoute({
  ...byPeople,
  operationId: "listGrants",
  method: "GET",
  path: `${organization}/grants`,
  params: OrganizationParams,
  summary: "List the roles that an organization has given",
  description: "In the order of their creation.",
  success: {
    status: 200,
    description: "All grants of the organization",
    body: z.strictObject({ grants: z.array(Grant) }),
  },
});

export const deleteGrant = defineRoute({
  ...byPeople,
  operationId: "deleteGrant",
  method: "DELETE",
  path: `${organization}/grants/:grantId`,
  params: z.strictObject({ organizationId: IdParam, grantId: IdParam }),
  summary: "Withdraw a role",
  description:
    "Takes effect on every service within a second, also for open streams. The last owner who can sign in keeps the role (409).",
  success: { status: 204, description: "The role is withdrawn" },
  errors: ["CONFLICT_001"],
});

export const endUserSessions = defineRoute({
  ...byPeople,
  operationId: "endUserSessions",
  method: "DELETE",
  path: `${organization}/users/:userId/sessions`,
  params: z.strictObject({ organizationId: IdParam, userId: IdParam }),
  summary: "End all sessions of a user's person",
  description:
    "For a lost computer. Only the operator can, because the sessions may belong to other organizations too.",
  access: "operator",
  success: { status: 204, description: "The sessions have ended" },
});

export const unlinkUser = defineRoute({
  ...byPeople,
  operationId: "unlinkUser",
  method: "DELETE",
  path: `${organization}/users/:userId/person`,
  params: z.strictObject({ organizationId: IdParam, userId: IdParam }),
  summary: "Unlink a user from its person",
  description:
    "For an account that the identity provider has replaced: the next verified sign-in with the user's address links it again.",
  access: "operator",
  success: { status: 204, description: "The user has no person" },
});
