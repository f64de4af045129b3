import { type KeyScope, type Role, type RouteContract, roles } from "@halyard/contracts";

/**
 * The role that each route needs, written by hand: an independent copy of the table of the product. The roles that grants
 * give at a place are computed in another way than in the product.
 */
export type At = "environment" | "project" | "any environment" | "organization" | "anywhere";
type Row = [Role, At] | [Role, At, "recent"] | "everybody" | "closed";

export const table: Readonly<Record<string, Row>> = {
  sdkGetFlags: "closed",
  sdkPostFlags: "closed",
  sdkGetValues: "closed",
  sdkPostValues: "closed",
  sdkGetEvaluate: "closed",
  sdkPostEvaluate: "closed",
  sdkStream: "closed",
  sdkRuleset: "closed",
  sdkRulesetStream: "closed",
  sdkList: "closed",
  sdkReportUsage: "closed",
  ofrepEvaluateFlags: "closed",
  ofrepEvaluateFlag: "closed",
  ofrepStream: "closed",
  createAudience: ["editor", "project"],
  listAudiences: ["viewer", "project"],
  getAudience: ["viewer", "project"],
  updateAudience: ["editor", "project"],
  deleteAudience: ["editor", "project"],
  getAudienceHistory: ["viewer", "project"],
  previewAudience: ["viewer", "project"],
  replaceAudienceList: ["editor", "project"],
  changeAudienceList: ["editor", "project"],
  lookUpAudienceMember: ["viewer", "project"],
  createFlag: ["editor", "any environment"],
  listFlags: ["viewer", "project"],
  getFlag: ["viewer", "project"],
  updateFlag: ["editor", "any environment"],
  updateFlags: ["editor", "project"],
  deleteFlag: ["editor", "project"],
  getDependents: ["viewer", "project"],
  getFlagUsage: ["viewer", "project"],
  getFlagState: ["viewer", "environment"],
  updateFlagState: ["editor", "environment"],
  explainFlag: ["viewer", "environment"],
  setSchedule: ["editor", "environment"],
  getSchedule: ["viewer", "environment"],
  clearSchedule: ["editor", "environment"],
  listSchedules: ["viewer", "project"],
  getHistory: ["viewer", "environment"],
  rollBack: ["editor", "environment"],
  createChangeRequest: ["viewer", "project"],
  listChangeRequests: ["viewer", "project"],
  getChangeRequest: ["viewer", "project"],
  updateChangeRequest: ["viewer", "project"],
  openChangeRequest: ["viewer", "project"],
  approveChangeRequest: ["approver", "any environment"],
  rejectChangeRequest: ["approver", "any environment"],
  withdrawChangeRequest: ["viewer", "project"],
  rebaseChangeRequest: ["viewer", "project"],
  applyChangeRequest: ["viewer", "project"],
  bypassChangeRequest: ["admin", "any environment", "recent"],
  listChanges: ["viewer", "project"],
  streamChanges: ["viewer", "project"],
  listOrganizationChanges: ["owner", "organization"],
  createWebhook: ["admin", "project"],
  listWebhooks: ["viewer", "project"],
  getWebhook: ["viewer", "project"],
  updateWebhook: ["admin", "project"],
  deleteWebhook: ["admin", "project"],
  testWebhook: ["admin", "project"],
  listDeliveries: ["viewer", "project"],
  getDelivery: ["viewer", "project"],
  redeliver: ["admin", "project"],
  listOperators: "everybody",
  getUsage: ["viewer", "project"],
  listUsageDays: ["viewer", "project"],
  listFlagTraffic: ["viewer", "project"],
  listReaders: ["viewer", "project"],
  createEnvironment: ["admin", "project"],
  listEnvironments: ["viewer", "project"],
  getEnvironment: ["viewer", "project"],
  updateEnvironment: ["admin", "project"],
  deleteEnvironment: ["admin", "project"],
  getMe: "closed",
  issueKey: ["viewer", "project", "recent"],
  listKeys: ["viewer", "project"],
  getKey: ["viewer", "project"],
  rotateKey: ["viewer", "project", "recent"],
  revokeKey: ["viewer", "project"],
  getStatus: "closed",
  listPlans: "everybody",
  createOrganization: "closed",
  listOrganizations: "closed",
  getOrganization: ["viewer", "anywhere"],
  updateOrganization: ["owner", "organization"],
  deleteOrganization: "closed",
  createUser: ["admin", "organization"],
  listUsers: ["viewer", "anywhere"],
  getUser: ["viewer", "anywhere"],
  updateUser: ["admin", "organization"],
  deleteUser: ["admin", "organization"],
  createProject: ["owner", "organization"],
  listProjects: ["viewer", "anywhere"],
  getProject: ["viewer", "project"],
  updateProject: ["owner", "organization"],
  deleteProject: ["owner", "organization"],
  getSession: "everybody",
  listSessions: "everybody",
  endSessions: "everybody",
  listPasskeys: "everybody",
  deletePasskey: "everybody",
  createSignInLink: "closed",
  invite: ["owner", "organization", "recent"],
  listInvitations: ["owner", "organization"],
  withdrawInvitation: ["owner", "organization"],
  acceptInvitation: "everybody",
  createGrant: ["admin", "anywhere", "recent"],
  listGrants: ["viewer", "anywhere"],
  deleteGrant: ["admin", "anywhere", "recent"],
  endUserSessions: "closed",
  unlinkUser: "closed",
};

/** The role that a grant of `role` gives at each place of a request, by the scope of the grant. */
const given = {
  "the organization": (role: Role) => role,
  "the project": (role: Role, at: At) => (at === "organization" ? undefined : role),
  "the environment": (role: Role, at: At) =>
    at === "organization" ? undefined : at === "project" ? "viewer" : role,
  "another environment": (role: Role, at: At) =>
    at === "organization" ? undefined : at === "project" || at === "environment" ? "viewer" : role,
  "another project": (role: Role, at: At) => (at === "anywhere" ? role : undefined),
} as const satisfies Record<string, (role: Role, at: At) => Role | undefined>;

export type ScopeName = keyof typeof given;

const scopeNames = Object.keys(given) as ScopeName[];

/** A grant of one role, and the role that it gives at each place. */
export type GivenRole = { role: Role; scope: ScopeName; held: (at: At) => Role | undefined };

/** Every role with every scope that it may have. */
export const givenRoles: readonly GivenRole[] = roles.flatMap((role) =>
  scopeNames
    .filter((scope) => role !== "owner" || scope === "the organization")
    .map((scope) => ({ role, scope, held: (at: At) => given[scope](role, at) })),
);

/** The most that a server key does with each scope. */
export const mostOf: Readonly<Record<KeyScope, Role>> = {
  read: "viewer",
  propose: "viewer",
  write: "admin",
};

/** Returns the row of a route; undefined for a route that the table lacks. */
export const rowOf = ({ operationId }: Pick<RouteContract, "operationId">): Row | undefined =>
  Object.hasOwn(table, operationId) ? table[operationId] : undefined;

const rank = (role: Role | undefined) => (role === undefined ? -1 : roles.indexOf(role));

/** Returns the lesser of two roles. */
export const lesserOf = (one: Role | undefined, other: Role | undefined): Role | undefined =>
  rank(one) < rank(other) ? one : other;

/** Returns the error code of a request whose caller holds these roles, or "allowed". */
export function expected(
  row: Row,
  held: (at: At) => Role | undefined,
  isRecent = true,
): "allowed" | "AUTH_002" | "AUTH_003" | "NOT_FOUND_001" {
  if (row === "everybody") return "allowed";
  if (row === "closed") return "AUTH_002";
  const [role, at, recent] = row;
  const isOfOrganization = at === "organization" || at === "anywhere";
  if (held(isOfOrganization ? "anywhere" : "any environment") === undefined) return "NOT_FOUND_001";
  if (rank(held(at)) < rank(role)) return "AUTH_002";
  return recent === undefined || isRecent ? "allowed" : "AUTH_003";
}
