import {
  type Access,
  type GrantedRole,
  type KeyScope,
  type RouteContract,
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
import {
  type At,
  expected,
  type GivenRole,
  givenRoles,
  lesserOf,
  mostOf,
  rowOf,
  type ScopeName,
  table,
} from "./table-of-roles.ts";

/**
 * Every route of the API against every role, every scope of a grant, every scope of a key, and sign-ins that are recent or
 * old. A route that is not in the table fails.
 */
const [organizationId, projectId, otherProjectId] = [uuidv7(), uuidv7(), uuidv7()];
const [environmentId, otherEnvironmentId, userId, personId] = [
  ...[uuidv7(), uuidv7(), uuidv7(), uuidv7()],
] as [string, string, string, string];

/** The places of the grants. */
const places: Readonly<Record<ScopeName, Omit<GrantedRole, "role">>> = {
  "the organization": {},
  "the project": { project_id: projectId },
  "the environment": { project_id: projectId, environment_ids: [environmentId] },
  "another environment": { project_id: projectId, environment_ids: [otherEnvironmentId] },
  "another project": { project_id: otherProjectId },
};

const grantsOf = ({ role, scope }: GivenRole): GrantedRole[] => [{ role, ...places[scope] }];

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
    for (const given of givenRoles)
      for (const signedInMinutesAgo of [29, 31]) {
        const { role, scope, held } = given;
        const outcome = await bySession(contract, grantsOf(given), { signedInMinutesAgo });
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
    for (const given of givenRoles)
      for (const keyScope of ["read", "propose", "write"] as const) {
        const { role, scope } = given;
        const held = (at: At) => lesserOf(given.held(at), mostOf[keyScope]);
        const user = { governed: true, grants: grantsOf(given) };
        const outcome = await byKey(contract, user, keyScope);
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
