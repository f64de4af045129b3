import { createHash } from "node:crypto";
import { type RouteContract, routes } from "@halyard/contracts";
import { call } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type postgres from "postgres";
import {
  fixtureFolder,
  type ReleaseFixture,
  readFixtureJson,
  restoreHome,
} from "../src/checks/release/release-fixture.ts";
import { acceptedBefore, rightsInEnvironments } from "../src/checks/release/rights-before.ts";
import { type Launched, launch } from "../src/system/launched.ts";
import { must } from "../src/system/tenancy.ts";

/**
 * Starts this commit on the data of release 0.1, which had no roles, and compares the rights of every kind of key with those
 * before. `npm start` makes the user of the demo an owner; the second user gets no role, as after an upgrade in production.
 */
const folder = fixtureFolder("0.1.0");
const unknownParameter = "?no_such_parameter=1";
const unknownId = "01890000-0000-7000-8000-000000000000";

const ada = { id: "01a20311-1f84-7000-8000-000000000001", email: "ada@example.com" };
const secret = "s".repeat(43);
const adaKeyIds = { project: "adaaaaaaaaaaaaaa", staging: "adabbbbbbbbbbbbb" };
const adaKey = (id: string) => `hs_${id}_${secret}`;

let launched: Launched;
let fixture: ReleaseFixture;
let ids: Record<string, string>;

beforeAll(async () => {
  fixture = await readFixtureJson<ReleaseFixture>(folder, "expected");
  launched = await launch({}, { prepare: (home) => restoreHome(folder, home, addAda) });
  const { project_id: projectId, organization_id: organizationId } = launched.demo;
  const read = (path: string) =>
    must(`${launched.demo.base_url}/api/v1/${path}`, { key: operator() });
  const { environments } = await read(`projects/${projectId}/environments`);
  const { users } = await read(`organizations/${organizationId}/users`);
  const named = Object.fromEntries(
    environments.map(({ name, id }: { name: string; id: string }) => [name, id]),
  );
  const userId = users.find(({ id }: { id: string }) => id !== ada.id).id as string;
  const { flags } = await must(`${launched.demo.base_url}/api/v1/flags`, {
    key: launched.demo.server_key,
  });
  const flagId = flags.find(({ key }: { key: string }) => key === "checkout").id as string;
  ids = { organizationId, projectId, userId, flagId, ...named };
});
afterAll(() => launched?.remove());

const operator = () => launched.demo.operator_token;

/** Adds a user to the database of 0.1, with a server key of the project and one of staging. */
async function addAda(sql: postgres.Sql): Promise<void> {
  await sql`
    insert into management.users
    select ${ada.id}, organization_id, ${ada.email}, 'Ada', created_at from management.users limit 1`;
  const digest = createHash("sha256").update(secret).digest("hex");
  for (const [id, name] of [
    [adaKeyIds.project, "Demo server"],
    [adaKeyIds.staging, "Staging backend"],
  ] as const)
    await sql`
      insert into management.api_keys
      select ${id}, ${digest}, kind, 'of Ada', environment_id, ${ada.id}, environment_only, 1,
        created_at, null, null
      from management.api_keys where name = ${name}`;
}

type Key = { name: string; kind: "client key" | "server key"; text: () => string };
const keys: readonly Key[] = [
  { name: "server key of an owner", kind: "server key", text: () => fixture.keys.server ?? "" },
  {
    ...{ name: "server key of an owner, of one environment", kind: "server key" },
    text: () => fixture.keys.staging ?? "",
  },
  {
    ...{ name: "server key of a user without a role", kind: "server key" },
    text: () => adaKey(adaKeyIds.project),
  },
  {
    ...{ name: "server key of a user without a role, of one environment", kind: "server key" },
    text: () => adaKey(adaKeyIds.staging),
  },
  { name: "client key", kind: "client key", text: () => fixture.keys.client ?? "" },
  { name: "client key that expires", kind: "client key", text: () => fixture.keys.ending ?? "" },
  {
    name: "client key after rotation",
    kind: "client key",
    text: () => fixture.keys.rotatedIn ?? "",
  },
];

/** Returns the status of a request whose query is invalid, so that it changes nothing. */
async function statusOf(method: string, path: string, key: string): Promise<number> {
  const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => idIn(name));
  const url = `${launched.demo.base_url}${filled}${unknownParameter}`;
  // Streams stay open until the client cancels them.
  const response = await fetch(url, { method, headers: { authorization: `Bearer ${key}` } });
  await response.body?.cancel();
  return response.status;
}

function idIn(name: string): string {
  const { organizationId = "", projectId = "", staging = "" } = ids;
  const known: Record<string, string> = {
    ...{ organizationId, projectId, environmentId: staging, envId: staging },
    ...{ keyId: "a".repeat(16), key: "no-such-key", format: "2", sha256: "0".repeat(64) },
  };
  return known[name] ?? unknownId;
}

const isOfEdge = (path: string) => /^\/(?:api\/v1\/sdk|ofrep)\//.test(path);
/** Edges accept unknown parameters. */
const isAccepted = (path: string, status: number) =>
  isOfEdge(path) ? ![401, 403, 429].includes(status) : status === 400;

describe("given the keys and users of release 0.1", () => {
  it.each(acceptedBefore)("%s: %s %s is accepted as before", async (accepted, method, path) => {
    const outcomes = [];
    for (const { name, kind, text } of keys) {
      const status = await statusOf(method, path, text());
      outcomes.push([name, isAccepted(path, status) ? "accepted" : status]);
      expect(outcomes.at(-1)).toEqual([
        name,
        accepted === "any key" || accepted.startsWith(kind) ? "accepted" : 403,
      ]);
    }
    const status = await statusOf(method, path, operator());
    expect(isAccepted(path, status)).toBe(accepted.endsWith("operator"));
  });

  const wasKnown = ({ method, path }: RouteContract) =>
    acceptedBefore.some(([, known, of]) => known === method && of === path);
  const added = routes.filter((route) => !wasKnown(route));
  const ofPeople = added.filter(({ access }) =>
    ["operator", "session", "operator_or_session"].includes(access),
  );
  it.each(ofPeople.map(({ method, path }) => [method, path] as const))(
    "%s %s, which is new, is for no key",
    async (method, path) => {
      for (const { name, text } of keys)
        expect([name, await statusOf(method, path, text())]).toEqual([name, 403]);
    },
  );

  it.each(rightsInEnvironments)("%s %s has the same status as in 0.1", async (...row) => {
    const [method, path, body, ofProject, ofStaging] = row;
    for (const { kind, name, text } of keys.filter(({ kind }) => kind === "server key")) {
      const isAda = name.includes("without a role");
      const values: Record<string, string> = {
        ...ids,
        userId: isAda ? ada.id : (ids.userId ?? ""),
        otherUserId: isAda ? (ids.userId ?? "") : ada.id,
      };
      const fill = (given: string) =>
        given.replaceAll(/:(\w+)/g, (found, param: string) => values[param] ?? found);
      const sent = body && JSON.parse(fill(JSON.stringify(body)));
      const url = launched.demo.base_url + fill(path);
      const { status } = await call(url, { method, key: text(), body: sent });
      const expected = name.endsWith("of one environment") ? ofStaging : ofProject;
      expect([kind, name, status]).toEqual([kind, name, expected]);
    }
  });

  it("gives a role to the user of the demo alone", async () => {
    const { grants } = await must(
      `${launched.demo.base_url}/api/v1/organizations/${ids.organizationId}/grants`,
      { key: operator() },
    );
    expect(grants).toMatchObject([{ subject: { user_id: ids.userId }, role: "owner" }]);
  });
});
