import {
  type Access,
  type GrantedRole,
  type KeyScope,
  type Role,
  type RouteContract,
  roles,
  routes,
} from "@halyard/contracts";
import { isProblem, type RequestFacts } from "@halyard/http";
import {
  createCallers,
  createPeopleDirectory,
  createPlaces,
  digestOfSecret,
} from "@halyard/people";
import { describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";

/**
 * Every route of the API against every role, every scope of a grant, every scope of a key, and sign-ins that are recent or
 * old. The table is written by hand, and the roles that grants give at a place are computed in another way than in the
 * product. A route that is not in the table fails.
 */
type At = "environment" | "project" | "any environment" | "organization" | "anywhere";
type Row = [Role, At] | [Role, At, "recent"] | "everybody" | "closed";

const table: Readonly<Record<string, Row>> = {
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

const [organizationId, projectId, otherProjectId] = [uuidv7(), uuidv7(), uuidv7()];
const [environmentId, otherEnvironmentId, userId, personId] = [
  ...[uuidv7(), uuidv7(), uuidv7(), uuidv7()],
] as [string, string, string, string];

/** Where a grant counts, and the role that a grant of `role` gives at each place of the request. */
const scopes = {
  "the organization": { grant: {}, at: everywhere },
  "the project": {
    grant: { project_id: projectId },
    at: (role: Role, at: At) => (at === "organization" ? undefined : role),
  },
  "the environment": {
    grant: { project_id: projectId, environment_ids: [environmentId] },
    at: (role: Role, at: At) =>
      at === "organization" ? undefined : at === "project" ? "viewer" : role,
  },
  "another environment": {
    grant: { project_id: projectId, environment_ids: [otherEnvironmentId] },
    at: (role: Role, at: At) =>
      at === "organization"
        ? undefined
        : at === "project" || at === "environment"
          ? "viewer"
          : role,
  },
  "another project": {
    grant: { project_id: otherProjectId },
    at: (role: Role, at: At) => (at === "anywhere" ? role : undefined),
  },
} as const satisfies Record<
  string,
  { grant: object; at: (role: Role, at: At) => Role | undefined }
>;
type ScopeName = keyof typeof scopes;

function everywhere(role: Role, _at: At): Role {
  return role;
}

const scopeNames = Object.keys(scopes) as ScopeName[];
const given = roles.flatMap((role) =>
  scopeNames
    .filter((scope) => role !== "owner" || scope === "the organization")
    .map((scope) => ({ role, scope })),
);

const publicUrl = new URL("https://flags.example.com");
const nowMs = Date.now();
const stamp = { version: 1, committed_at: new Date(nowMs).toISOString() };
const secret = "s".repeat(43);

/** Creates the callers of a service, with one person who has these roles. */
function callersWith(grants: GrantedRole[], { signedInMinutesAgo = 0, governed = true } = {}) {
  const people = createPeopleDirectory();
  const sessionId = uuidv7();
  const signedInAt = new Date(nowMs - signedInMinutesAgo * 60_000).toISOString();
  people.apply({
    address: { kind: "user", organizationId, userId },
    value: {
      ...{ kind: "user", organization_id: organizationId, user_id: userId, person_id: personId },
      ...{ governed, grants, ...stamp },
    },
  });
  people.apply({
    address: { kind: "session", sessionId },
    value: {
      ...{ kind: "session", session_id: sessionId, secret_sha256: digestOfSecret(secret) },
      ...{ person_id: personId, via: "passkey", groups: [], ...stamp },
      ...{ signed_in_at: signedInAt, confirmed_at: signedInAt },
      expires_at: new Date(nowMs + 60_000).toISOString(),
      idle_until: new Date(nowMs + 60_000).toISOString(),
    },
  });
  const places = createPlaces();
  places.apply({
    address: { kind: "project", organizationId, projectId },
    value: {
      kind: "project",
      organization_id: organizationId,
      project_id: projectId,
      name: "p",
      ...stamp,
    },
  });
  places.apply({
    address: { kind: "environment", organizationId, environmentId },
    value: {
      ...{ kind: "environment", organization_id: organizationId, project_id: projectId },
      ...{ environment_id: environmentId, name: "e", ...stamp },
    },
  });
  const finding = { ...people, places };
  const callers = createCallers({ people: finding, publicUrl, nowMs: () => nowMs });
  return { callers, cookie: `__Host-halyard-session=${sessionId}.${secret}` };
}

function requestTo({ path }: RouteContract, headers: RequestFacts["headers"]): RequestFacts {
  const ids = { organizationId, projectId, environmentId, envId: environmentId, userId };
  const named = Object.entries(ids).filter(([name]) => new RegExp(`:${name}\\b`).test(path));
  return { id: "request", ip: "192.0.2.1", headers, params: Object.fromEntries(named) };
}

/** Sends a request by session. Returns the error code, or "allowed". */
async function bySession(
  contract: RouteContract,
  grants: GrantedRole[],
  { signedInMinutesAgo = 0, origin = publicUrl.origin as string | null } = {},
): Promise<string> {
  const { callers, cookie } = callersWith(grants, { signedInMinutesAgo });
  const request = requestTo(contract, {
    cookie,
    "halyard-environment": environmentId,
    ...(origin !== null && { origin }),
  });
  const session = await callers.findSession(request);
  if (session === undefined) return "AUTH_001";
  const caller = await callers.ofSession(contract, session, request);
  return isProblem(caller) ? caller.rejected : "allowed";
}

/** Sends a request with a server key of the environment. Returns the error code, or "allowed". */
async function byKey(
  contract: RouteContract,
  user: { governed: boolean; grants: GrantedRole[] },
  scope: KeyScope,
): Promise<string> {
  const { callers } = callersWith(user.grants, user);
  const key = {
    ...{ id: "aaaaaaaaaaaaaaaa", kind: "server" as const, organizationId, projectId },
    ...{ environmentId, userId },
    ...{ environmentOnly: false, scope, expiresAtMs: undefined },
  } as const;
  const caller = await callers.ofKey(contract, key, requestTo(contract, {}));
  return isProblem(caller) ? caller.rejected : "allowed";
}

const rowOf = ({ operationId }: RouteContract): Row | undefined =>
  Object.hasOwn(table, operationId) ? table[operationId] : undefined;

const rank = (role: Role | undefined) => (role === undefined ? -1 : roles.indexOf(role));

function expected(row: Row, held: (at: At) => Role | undefined, isRecent = true): string {
  if (row === "everybody") return "allowed";
  if (row === "closed") return "AUTH_002";
  const [role, at, recent] = row;
  const isOfOrganization = at === "organization" || at === "anywhere";
  if (held(isOfOrganization ? "anywhere" : "any environment") === undefined) return "NOT_FOUND_001";
  if (rank(held(at)) < rank(role)) return "AUTH_002";
  return recent === undefined || isRecent ? "allowed" : "AUTH_003";
}

const byOperation = routes.map((contract) => [contract.operationId, contract] as const);
const keyAccess: readonly Access[] = ["server_key", "operator_or_server_key"];
const forKeys = byOperation.filter(([, { access }]) => keyAccess.includes(access));

describe("the table of roles", () => {
  it("contains every route and nothing else", () => {
    expect(Object.keys(table).toSorted()).toEqual(
      routes.map(({ operationId }) => operationId).toSorted(),
    );
  });
});

describe("given a signed-in person", () => {
  it.each(byOperation)("%s needs the role of the table", async (_name, contract) => {
    const row = rowOf(contract) ?? "closed";
    for (const { role, scope } of given)
      for (const signedInMinutesAgo of [29, 31]) {
        const grants = [{ role, ...scopes[scope].grant }] as GrantedRole[];
        const held = (at: At) => scopes[scope].at(role, at);
        const outcome = await bySession(contract, grants, { signedInMinutesAgo });
        expect({ role, scope, signedInMinutesAgo, outcome }).toEqual({
          ...{ role, scope, signedInMinutesAgo },
          outcome: expected(row, held, signedInMinutesAgo < 30),
        });
      }
  });

  it.each(byOperation)("%s shows nothing to a person without a role", async (_name, contract) => {
    const row = rowOf(contract) ?? "closed";
    expect(await bySession(contract, [])).toBe(expected(row, () => undefined));
  });

  const writes = byOperation.filter(([, { method }]) => method !== "GET");
  it.each(writes)("%s rejects a page of another website", async (_name, contract) => {
    const owner: GrantedRole[] = [{ role: "owner" }];
    for (const origin of ["https://other.example.com", "null", null])
      expect(await bySession(contract, owner, { origin })).toBe("AUTH_002");
  });
});

describe("given a server key", () => {
  it.each(forKeys)("%s needs the lesser of scope and role", async (_name, contract) => {
    const row = rowOf(contract) ?? "closed";
    for (const { role, scope } of given)
      for (const keyScope of ["read", "propose", "write"] as const) {
        const grants = [{ role, ...scopes[scope].grant }] as GrantedRole[];
        const most = keyScope === "write" ? "admin" : "viewer";
        const held = (at: At) => {
          const own = scopes[scope].at(role, at);
          return rank(own) > rank(most) ? most : own;
        };
        const outcome = await byKey(contract, { governed: true, grants }, keyScope);
        expect({ role, scope, keyScope, outcome }).toEqual({
          ...{ role, scope, keyScope },
          outcome: row === "closed" ? "allowed" : expected(row, held),
        });
      }
  });

  it.each(forKeys)(
    "%s is open as before to a user who never had a role",
    async (_name, contract) => {
      expect(await byKey(contract, { governed: false, grants: [] }, "write")).toBe("allowed");
    },
  );

  it.each(forKeys)("%s is closed when the last role is withdrawn", async (_name, contract) => {
    const isClosed = rowOf(contract) === "closed";
    const outcome = await byKey(contract, { governed: true, grants: [] }, "write");
    expect(outcome).toBe(isClosed ? "allowed" : "NOT_FOUND_001");
  });
});
