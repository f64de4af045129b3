import { type Receiver, startReceiver } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { databaseContent } from "../../src/checks/database-content.ts";
import {
  enableAt,
  type FilledTenant,
  fillTenant,
  idsOf,
  pathOf,
} from "../../src/stories/filled-tenant.ts";
import type { ClientSystem } from "../../src/system/client-system.ts";
import { createProject, createTenant, must, operatorToken } from "../../src/system/tenancy.ts";
import { exampleOf } from "../../src/traffic/bad-bodies.ts";
import { contentOf, type Operation, operations } from "../../src/traffic/openapi.ts";
import { type RawRequest, sendRaw } from "../../src/traffic/raw-request.ts";

/**
 * Tests the isolation of tenants and environments over all routes. The table consists of every operation of the OpenAPI
 * document, which is generated from the route contracts, with every mixture of the caller's ids and of ids of another
 * organization or project. New routes are therefore included.
 */
type Row = { what: string; asked: RawRequest; expected: string };

const filters: Record<string, keyof FilledTenant> = {
  flag_id: "flagId",
  environment_id: "environmentId",
};
const flagsPath = "/api/v1/flags";
const all = operations();
const withIds = all.filter(
  ({ pathParameters }) => pathParameters.length > 0 && !pathParameters.includes("key"),
);
const ofAudiences = all.filter(({ path }) => path.startsWith("/api/v1/audiences/{key}"));
const evaluations = all.filter(
  (operation) =>
    parametersOf(operation).includes("key") &&
    operation.path !== flagsPath &&
    !ofAudiences.includes(operation),
);
const byFilter = all.filter(({ queryParameters }) =>
  queryParameters.some(({ name }) => name in filters),
);
const writes = withIds.filter(({ method }) => method !== "GET");
const atOnce = 8;

function parametersOf({ pathParameters, queryParameters }: Operation): string[] {
  return [...pathParameters, ...queryParameters.map(({ name }) => name)];
}

/** Returns all non-empty subsets. */
function subsetsOf<T>(items: readonly T[]): T[][] {
  const [first, ...rest] = items;
  if (first === undefined) return [];
  const others = subsetsOf(rest);
  return [[first], ...others, ...others.map((other) => [first, ...other])];
}

export function describeIsolation({ system, gateway }: ClientSystem): void {
  let receiver: Receiver;
  let mine: FilledTenant;
  let sibling: FilledTenant;
  let theirs: FilledTenant;

  beforeAll(async () => {
    receiver = await startReceiver();
    const addresses = { gateway: gateway.url, receiver: receiver.url };
    const own = await createTenant(gateway.url, { name: "Mine" });
    mine = await fillTenant(own, addresses, "my-flag");
    const { organizationId, userId } = own;
    const second = { organizationId, userId, name: "Sibling" };
    sibling = await fillTenant(await createProject(gateway.url, second), addresses, "their-flag");
    const other = await createTenant(gateway.url, { name: "Theirs" });
    theirs = await fillTenant(other, addresses, "their-flag");
  });
  afterAll(() => receiver?.close());

  /** Returns the callers of an operation, by name, including the operator if the operation accepts it. */
  function callersOf({ accepts }: Operation): [string, string][] {
    const keys: [string, string][] = [
      ["serverKey", mine.serverKey],
      ["environmentOnlyKey", mine.environmentOnlyKey],
      ["clientKey", mine.clientKey],
    ];
    return [
      ...(accepts.has("serverKey") ? keys : []),
      ...(accepts.has("operatorToken")
        ? [["operatorToken", operatorToken] as [string, string]]
        : []),
    ];
  }

  function request(operation: Operation, token: string, ids: Record<string, string>): RawRequest {
    const { method, body } = operation;
    const fields = {
      ...{ user_id: mine.userId, enable_at: enableAt, url: receiver.url },
      ...{ flag_id: mine.flagId, environment_id: mine.environmentId },
    };
    const example =
      body && exampleOf(body.schema, { ...fields, disable_at: "2099-01-02T00:00:00Z" });
    const content = contentOf(operation, example);
    const headers = { authorization: `Bearer ${token}`, ...content.headers };
    return { ...content, method, path: pathOf(operation, ids), headers };
  }

  /** Returns whether all ids of a path belong to one tenant, so that the operator finds the resource. */
  const belongTogether = (operation: Operation, ids: Record<string, string>) =>
    [mine, sibling, theirs].some((tenant) =>
      operation.pathParameters.every((name) => ids[name] === idsOf(tenant)[name]),
    );

  /** An `environment_only` key receives 403 for every webhook of its project, whether the webhook exists or not. */
  const isForbiddenWebhook = (caller: string, { path }: Operation, ids: Record<string, string>) =>
    caller === "environmentOnlyKey" &&
    path.includes("/webhooks/") &&
    ids.projectId === mine.projectId;

  function rowsOf(operation: Operation): Row[] {
    const rows: Row[] = [];
    for (const [whose, foreign] of Object.entries({ sibling, theirs }))
      for (const names of subsetsOf(operation.pathParameters)) {
        const swapped = names.map((name) => [name, idsOf(foreign)[name] as string]);
        const ids = { ...idsOf(mine), ...Object.fromEntries(swapped) };
        if (pathOf(operation, ids) === pathOf(operation, idsOf(mine))) continue;
        for (const [caller, token] of callersOf(operation)) {
          if (caller === "operatorToken" && belongTogether(operation, ids)) continue;
          const mayNever = caller === "clientKey" || isForbiddenWebhook(caller, operation, ids);
          const expected = mayNever ? "403 AUTH_002" : "404 NOT_FOUND_001";
          const what = `${caller}, ${operation.id}, ${names.join("+")} of ${whose}`;
          rows.push({ what, asked: request(operation, token, ids), expected });
        }
      }
    return rows;
  }

  /** Sends the requests of all rows, and returns the unexpected responses. */
  async function complaints(rows: readonly Row[]): Promise<string[]> {
    const found: string[] = [];
    const remaining = [...rows];
    const work = async () => {
      for (let next = remaining.pop(); next !== undefined; next = remaining.pop()) {
        const { status, text } = await sendRaw(gateway.url, next.asked);
        const answered = `${status} ${/"code":"(\w+)"/.exec(text)?.[1] ?? ""}`;
        if (answered !== next.expected)
          found.push(`${next.what}: ${answered} ${text.slice(0, 200)}`);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    return found.sort();
  }

  it("finds everything by the ids of the caller's own project", async () => {
    const reads = withIds.filter(({ method }) => method === "GET");
    const rows = reads.flatMap((operation) =>
      callersOf(operation)
        .filter(([caller]) => caller === "serverKey" || caller === "operatorToken")
        .map(([caller, token]) => ({
          what: `${caller}, ${operation.id}`,
          asked: request(operation, token, idsOf(mine)),
          expected: "200 ",
        })),
    );
    expect(rows.length).toBeGreaterThan(15);
    expect(await complaints(rows)).toEqual([]);
  });

  it("returns 404 for ids of another organization or project, with every kind of key", async () => {
    const rows = withIds.flatMap(rowsOf);
    const before = await databaseContent(system.sql);
    expect(rows.length).toBeGreaterThan(300);
    expect(await complaints(rows)).toEqual([]);
    expect(await databaseContent(system.sql)).toEqual(before);
  });

  it("returns 404 for a flag key of another organization or project", async () => {
    const askedFor = (flagKey: string, expected: string): Row[] =>
      evaluations.flatMap((operation) =>
        [mine.serverKey, mine.environmentOnlyKey, mine.clientKey].map((token) => ({
          what: `${operation.id}, ${flagKey}`,
          asked: {
            ...request(operation, token, { ...idsOf(mine), key: flagKey }),
            ...(operation.body === undefined ? {} : { body: "{}" }),
          },
          expected,
        })),
      );
    const isOfrep = ({ what }: Row) => what.includes("/ofrep/");
    const foreign = askedFor("their-flag", "404 NOT_FOUND_001");
    expect(evaluations.length).toBeGreaterThan(2);
    expect(await complaints(foreign.filter((row) => !isOfrep(row)))).toEqual([]);
    const listed = await must(`${gateway.url}${flagsPath}?key=their-flag`, { key: mine.serverKey });
    expect(listed).toEqual({ flags: [] });
    const ofrep = foreign.filter(isOfrep).map((row) => ({ ...row, expected: "404 " }));
    expect(await complaints(ofrep)).toEqual([]);
    expect(await complaints(askedFor("my-flag", "200 "))).toEqual([]);
  });

  it("returns 404 for an audience of another organization or project", async () => {
    const rowsFor = (key: string, expected: string): Row[] =>
      ofAudiences.map((operation) => ({
        what: `${operation.id}, ${key}`,
        asked: request(operation, mine.serverKey, { ...idsOf(mine), key }),
        expected,
      }));
    const reads = ({ asked: { method } }: Row) => method === "GET";
    const before = await databaseContent(system.sql);
    expect(ofAudiences.length).toBeGreaterThan(7);
    expect(await complaints(rowsFor("their-flag", "404 NOT_FOUND_001"))).toEqual([]);
    expect(await complaints(rowsFor("my-flag", "200 ").filter(reads))).toEqual([]);
    expect(await databaseContent(system.sql)).toEqual(before);
  });

  it("treats an id of another organization or project in a filter as unknown", async () => {
    for (const operation of byFilter)
      for (const { name } of operation.queryParameters.filter((each) => each.name in filters))
        for (const token of [mine.serverKey, mine.environmentOnlyKey]) {
          const filtered = async (id: unknown) => {
            const path = `${pathOf(operation, idsOf(mine))}?${name}=${id}`;
            const headers = { authorization: `Bearer ${token}` };
            const { status, text } = await sendRaw(gateway.url, { method: "GET", path, headers });
            return { path: operation.path, name, status, text };
          };
          const unknown = await filtered(uuidv7());
          expect(await filtered(sibling[filters[name] as keyof FilledTenant])).toEqual(unknown);
          expect(await filtered(theirs[filters[name] as keyof FilledTenant])).toEqual(unknown);
          const own = await filtered(mine[filters[name] as keyof FilledTenant]);
          expect(own.text).not.toBe(unknown.text);
        }
  });

  describe("and an environment_only key", () => {
    /** Reads the state of the other environment, and the settings that environments share. */
    async function readRest() {
      const read = (path: string, key: string) => must(gateway.url + path, { key });
      const project = `/api/v1/projects/${mine.projectId}`;
      const other = `${project}/environments/${mine.otherEnvironmentId}`;
      const flag = await read(`/api/v1/flags/${mine.flagId}`, mine.otherServerKey);
      const { flags } = await read("/api/v1/sdk/flags", mine.otherServerKey);
      const { last_evaluated_at: _, updated_at: __, version: ___, ...settings } = flag;
      const { keys } = await read(`${other}/keys`, operatorToken);
      return {
        settings,
        values: Object.entries(flags).filter(([, value]) => value),
        keys: keys.map(({ last_used_at: _used, ...key }: Record<string, unknown>) => key),
        environments: await read(`${project}/environments`, operatorToken),
        webhooks: await read(`${project}/webhooks`, mine.serverKey),
      };
    }

    it("changes nothing in the other environment or in the project as a whole", async () => {
      await must(`${gateway.url}/api/v1/flags/${mine.flagId}`, {
        method: "PATCH",
        key: mine.otherServerKey,
        body: { enabled: true },
      });
      const before = await readRest();
      expect(before.values).toEqual([["my-flag", true]]);
      const answers = new Map<string, number>();
      const { otherEnvironmentId } = mine;
      const otherEnvironment = { envId: otherEnvironmentId, environmentId: otherEnvironmentId };
      const creates = all.filter(
        ({ method, path }) => method === "POST" && path === "/api/v1/flags",
      );
      for (const operation of [
        ...creates,
        ...writes.filter(({ accepts }) => accepts.has("serverKey")),
      ])
        for (const ids of [idsOf(mine), { ...idsOf(mine), ...otherEnvironment }]) {
          const asked = request(operation, mine.environmentOnlyKey, ids);
          if (answers.has(`${operation.method} ${asked.path}`)) continue;
          const { status, text } = await sendRaw(gateway.url, asked);
          expect([operation.id, status, text, await readRest()]).toEqual([
            operation.id,
            status,
            text,
            before,
          ]);
          answers.set(`${operation.method} ${asked.path}`, status);
        }
      const flag = `/api/v1/flags/${mine.flagId}`;
      expect(Object.fromEntries(answers)).toMatchObject({
        "POST /api/v1/flags": 201,
        [`DELETE ${flag}`]: 403,
        [`PATCH ${flag}`]: 403,
        [`PATCH ${flag}/environments/${mine.environmentId}`]: 200,
        [`PATCH ${flag}/environments/${mine.otherEnvironmentId}`]: 403,
        [`POST ${flag}/environments/${mine.otherEnvironmentId}/rollback`]: 403,
        [`DELETE /api/v1/projects/${mine.projectId}/webhooks/${mine.webhookId}`]: 403,
        [`POST /api/v1/projects/${mine.projectId}/environments`]: 403,
      });
    });
  });
}
