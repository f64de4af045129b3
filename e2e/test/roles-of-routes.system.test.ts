import {
  environmentHeader,
  KeyScope,
  peopleKey,
  type Role,
  type RouteContract,
  routes,
} from "@halyard/contracts";
import { call, eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  type At,
  expected,
  type GivenRole,
  givenRoles,
  lesserOf,
  mostOf,
  rowOf,
  type ScopeName,
} from "../../libs/people/test/table-of-roles.ts";
import { signInByLink } from "../src/system/sign-in.ts";
import { type System, startSystem } from "../src/system/system.ts";
import {
  createProject,
  createTenant,
  must,
  operatorToken,
  type Tenant,
} from "../src/system/tenancy.ts";

/**
 * Sends a request to every route of every service, by sessions with each role at each place, by old sessions, and by server
 * keys of each scope. The outcomes are those of the table of roles.
 *
 * Every request has a query parameter that no route knows. Services check it after the authorization, so an allowed
 * request gets 400 and changes nothing.
 */
const publicUrl = "http://localhost:8080";
const unknownParameter = "?no_such_parameter=1";
const unknownId = "01890000-0000-7000-8000-000000000000";
const oldMinutes = 31;
const concurrency = 8;

type Headers = Record<string, string>;
/** A credential, and the role that it gives at each place. */
type Caller = { name: string; headers: Headers; held: (at: At) => Role | undefined };
type PersonCaller = Caller & { isRecent: boolean };

let system: System;
let tenant: Tenant;
let otherProjectId: string;
let urls: Readonly<Record<RouteContract["service"], string>>;
let people: PersonCaller[];
let keys: Caller[];
let count = 0;

beforeAll(async () => {
  const settings = { PUBLIC_URL: publicUrl };
  system = await startSystem({
    ...{ managements: 1, schedulers: 1, dispatchers: 1, meterings: 1, edges: 1 },
    settings: () => ({
      management: { ...settings, TRUSTED_PROXIES: "127.0.0.1" },
      ...{ scheduler: settings, "webhook-dispatcher": settings, "usage-metering": settings },
    }),
  });
  const { managements, schedulers, dispatchers, meterings, edges } = system;
  const urlOf = ([process]: readonly { url: string }[]) => process?.url ?? "";
  urls = {
    ...{ management: urlOf(managements), scheduler: urlOf(schedulers), "sdk-edge": urlOf(edges) },
    ...{ "webhook-dispatcher": urlOf(dispatchers), "usage-metering": urlOf(meterings) },
  };
  tenant = await createTenant(urls.management, { name: "Acme" });
  const other = await createProject(urls.management, { ...tenant, name: "Other" });
  otherProjectId = other.projectId;
  people = await signInEverybody();
  keys = await issueKeys();
  await awaitServices();
}, 120_000);
afterAll(() => system?.close());

const operate = (path: string, body: object) =>
  must(`${urls.management}/api/v1/${path}`, { method: "POST", key: operatorToken, body });
const ofOrganization = (path: string) => `organizations/${tenant.organizationId}/${path}`;

async function createUser(): Promise<string> {
  const { id } = await operate(ofOrganization("users"), { email: `user-${++count}@example.com` });
  return id;
}

/** Creates a user with a role. */
async function createUserWith({ role, scope: name }: GivenRole): Promise<string> {
  const { organizationId, projectId, environmentId, otherEnvironmentId } = tenant;
  const scopes: Record<ScopeName, object> = {
    "the organization": { organization: organizationId },
    "the project": { project: projectId },
    "the environment": { project: projectId, environments: [environmentId] },
    "another environment": { project: projectId, environments: [otherEnvironmentId] },
    "another project": { project: otherProjectId },
  };
  const userId = await createUser();
  const subject = { user_id: userId };
  await operate(ofOrganization("grants"), { subject, role, scope: scopes[name] });
  return userId;
}

/** Signs in from a new address, because sign-ins are limited by address. */
function signIn(userId: string): Promise<Headers> {
  const { organizationId } = tenant;
  const browser = { origin: publicUrl, address: `192.0.2.${++count}` };
  return signInByLink(urls.management, { organizationId, userId, ...browser });
}

/** Signs in a person without a role, one with each role at each place, and those of the organization again, long ago. */
async function signInEverybody(): Promise<PersonCaller[]> {
  const nobody = { name: "nobody", headers: await signIn(await createUser()) };
  const recent: PersonCaller[] = [{ ...nobody, held: () => undefined, isRecent: true }];
  const old: PersonCaller[] = [];
  for (const given of givenRoles) {
    const userId = await createUserWith(given);
    const caller = { name: `${given.role} in ${given.scope}`, held: given.held };
    recent.push({ ...caller, headers: await signIn(userId), isRecent: true });
    if (given.scope !== "the organization") continue;
    const name = `${caller.name}, long ago`;
    old.push({ ...caller, name, headers: await signIn(userId), isRecent: false });
  }
  await makeOld(old);
  return [...recent, ...old];
}

/** Moves the sign-ins of sessions into the past. */
async function makeOld(callers: readonly Caller[]): Promise<void> {
  const time = new Date(Date.now() - oldMinutes * 60_000).toISOString();
  const sessionIds = callers.map(({ headers }) => headers.cookie?.split(/[=.]/)[1] ?? "");
  const entries = sessionIds.map((sessionId) => peopleKey({ kind: "session", sessionId }));
  await system.sql`
    update people_entries
    set content = (content::jsonb || jsonb_build_object(
        'signed_in_at', ${time}::text, 'confirmed_at', ${time}::text))::text,
      version = version + 1, sequence = null
    where key = any(${entries})`;
  for (const { headers } of callers)
    await eventually(async () => {
      const { confirmed_at } = await must(`${urls.management}/api/v1/session`, { headers });
      return confirmed_at === time;
    });
}

/** Issues server keys: of each scope to users with a role in the organization or none, and else with all rights. */
async function issueKeys(): Promise<Caller[]> {
  const issued: Caller[] = [];
  const path = `projects/${tenant.projectId}/environments/${tenant.environmentId}/keys`;
  async function issue(userId: string, scope: KeyScope, user: Omit<Caller, "headers">) {
    const { key } = await operate(path, { kind: "server", name: "k", user_id: userId, scope });
    const held = (at: At) => lesserOf(user.held(at), mostOf[scope]);
    issued.push({
      ...{ name: `${scope} key of ${user.name}`, headers: { authorization: `Bearer ${key}` } },
      held,
    });
  }
  const free = await createUser();
  for (const scope of KeyScope.options)
    await issue(free, scope, { name: "a user who never had a role", held: () => "owner" });
  for (const given of givenRoles) {
    const userId = await createUserWith(given);
    const scopes = given.scope === "the organization" ? KeyScope.options : (["write"] as const);
    const user = { name: `${given.role} in ${given.scope}`, held: given.held };
    for (const scope of scopes) await issue(userId, scope, user);
  }
  return issued;
}

/** Waits until every service has received the newest session and the newest key. */
async function awaitServices(): Promise<void> {
  const paths = [
    `${urls.scheduler}/api/v1/schedules`,
    `${urls["usage-metering"]}/api/v1/usage`,
    `${urls["webhook-dispatcher"]}/api/v1/projects/${tenant.projectId}/webhooks`,
  ];
  for (const url of paths)
    for (const headers of [people.at(-1)?.headers ?? {}, keys.at(-1)?.headers ?? {}])
      await eventually(async () => (await call(url, { headers })).status !== 401);
}

/** Returns the error code of a request, or "allowed" if nothing but the unknown parameter was wrong. */
async function outcomeOf(contract: RouteContract, { headers }: Caller): Promise<string> {
  const { organizationId, projectId, environmentId } = tenant;
  const ids: Record<string, string> = {
    ...{ organizationId, projectId, environmentId, envId: environmentId },
    ...{ keyId: "a".repeat(16), key: "no-such-key", format: "2", sha256: "0".repeat(64) },
  };
  const path = contract.path.replaceAll(/:(\w+)/g, (_, name: string) => ids[name] ?? unknownId);
  const { status, body } = await call(`${urls[contract.service]}${path}${unknownParameter}`, {
    method: contract.method,
    headers: { [environmentHeader]: environmentId, ...headers },
  });
  if (status === 400) return "allowed";
  // OFREP has another form of errors.
  return status === 401 ? "AUTH_001" : (body?.error?.code ?? `status ${status}`);
}

/** Sends a request of each caller to a route, and compares the outcomes. */
async function expectOutcomes<C extends Caller>(
  contract: RouteContract,
  callers: readonly C[],
  outcome: (caller: C) => string,
): Promise<void> {
  const found: (readonly [string, string])[] = [];
  // Of costly requests, an organization may send only a few at the same time.
  for (let first = 0; first < callers.length; first += concurrency)
    found.push(
      ...(await Promise.all(
        callers
          .slice(first, first + concurrency)
          .map(async (caller) => [caller.name, await outcomeOf(contract, caller)] as const),
      )),
    );
  expect(found).toEqual(callers.map((caller) => [caller.name, outcome(caller)]));
}

function rowFor(contract: RouteContract) {
  const row = rowOf(contract);
  if (row === undefined) throw new Error(`the table of roles lacks ${contract.operationId}`);
  return row;
}

const byOperation = routes.map((contract) => [contract.operationId, contract] as const);
const outsideOfEdges = byOperation.filter(([, { service }]) => service !== "sdk-edge");
const ofEdges = byOperation.filter(([, { service }]) => service === "sdk-edge");

describe("by session", () => {
  it.each(outsideOfEdges)("%s needs the role of the table", async (_, contract) => {
    const row = rowFor(contract);
    await expectOutcomes(contract, people, ({ held, isRecent }) => expected(row, held, isRecent));
  });

  it.each(ofEdges)("%s needs a key, because edges read no cookie", async (_, contract) => {
    expect(rowFor(contract)).toBe("closed");
    await expectOutcomes(contract, people, () => "AUTH_001");
  });

  const writes = outsideOfEdges.filter(([, { method }]) => method !== "GET");
  it.each(writes)("%s rejects a page of another website", async (_, contract) => {
    const ofOtherPage = people.map((caller) => ({
      ...caller,
      headers: { ...caller.headers, origin: "https://other.example.com" },
    }));
    await expectOutcomes(contract, ofOtherPage, () => "AUTH_002");
  });
});

describe("by server key", () => {
  const forKeys = ["server_key", "operator_or_server_key", "any_key", "operator_or_any_key"];

  it.each(outsideOfEdges)("%s needs the lesser of scope and role", async (_, contract) => {
    const row = rowFor(contract);
    const isForKeys = forKeys.includes(contract.access);
    await expectOutcomes(contract, keys, ({ held }) => {
      if (!isForKeys) return "AUTH_002";
      return row === "closed" ? "allowed" : expected(row, held);
    });
  });
});
