import { join } from "node:path";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { type Demo, launchHalyard, prepareLaunches } from "./launcher.ts";
import { throwawayDirectories } from "./throwaway.ts";

prepareLaunches();
const throwawayDirectory = throwawayDirectories();

type Parameter = { name: string; in: string; required?: boolean; example?: string };
type Operation = {
  operationId: string;
  security: Record<string, unknown>[];
  parameters: Partial<Parameter>[];
  requestBody?: {
    content: Record<string, { example?: unknown; examples?: Record<string, { value: unknown }> }>;
  };
  responses: Record<string, unknown>;
};
type Request = Operation & { method: string; path: string };
type Body = { type: string; text: string };

/** The requests that are sent first. Names are unique, so a second flag with the same key would be rejected. */
const creations = ["createFlag", "createWebhook", "createAudience"];
/** Their token and hash are in the responses to other requests. */
const withoutExample = ["ofrepStream", "sdkList"];
/** Their ids are placeholders, so that a reader who sends them to find out deletes nothing. */
const endingRequests = {
  ...{ clearSchedule: 404, deleteFlag: 404, deleteWebhook: 404, revokeKey: 404, rotateKey: 404 },
  deleteAudience: 404,
  ...{ deleteEnvironment: 400, deleteOrganization: 400, deleteProject: 400, deleteUser: 400 },
  ...{ deleteGrant: 404, withdrawInvitation: 404 },
  ...{ getChangeRequest: 404, updateChangeRequest: 404, openChangeRequest: 404 },
  ...{ rebaseChangeRequest: 404, applyChangeRequest: 404, bypassChangeRequest: 404 },
  withdrawChangeRequest: 404,
};
/** Routes of signed-in people. Keys are refused. */
const forPeople = {
  ...{ getSession: 403, listSessions: 403, endSessions: 403, acceptInvitation: 403 },
  ...{ listPasskeys: 403, deletePasskey: 403 },
  ...{ approveChangeRequest: 403, rejectChangeRequest: 403 },
};

describe("given a demo with a flag, a webhook and an audience of the examples", () => {
  let demo: Demo;
  beforeAll(async () => {
    demo = await launchHalyard({ home: join(throwawayDirectory(), "home") }).ready();
    for (const id of [...creations, "testWebhook"]) {
      const request = await example(id);
      for (const body of bodiesOf(request)) expect(await send(request, body)).toBeLessThan(300);
    }
  });

  async function examples(): Promise<Request[]> {
    const served = await (await fetch(`${demo.base_url}/openapi.json`)).json();
    const { paths } = served as { paths: Record<string, Record<string, Operation>> };
    return Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => ({ method, path, ...operation })),
    );
  }

  async function example(id: string): Promise<Request> {
    const found = (await examples()).find(({ operationId }) => operationId === id);
    if (found === undefined) throw new Error(`no operation ${id}`);
    return found;
  }

  function keyFor({ security }: Request): string {
    const accepts = (name: string) => security.some((each) => name in each);
    if (accepts("operatorToken") && !accepts("serverKey")) return demo.operator_token;
    if (accepts("clientKey")) return demo.client_key;
    return accepts("readerKey") ? demo.reader_key : demo.server_key;
  }

  /** Returns the bodies of the examples of all media types; `undefined` for a request without a body. */
  function bodiesOf({ requestBody }: Request): (Body | undefined)[] {
    if (requestBody === undefined) return [undefined];
    return Object.entries(requestBody.content).flatMap(([type, { example: only, examples }]) => {
      const values = Object.values(examples ?? { only: { value: only } });
      return values.map(({ value }) => ({ type, text: textOf(type, value) }));
    });
  }

  const textOf = (type: string, value: unknown) =>
    type === "application/json" ? JSON.stringify(value) : String(value);

  /** Sends the request as served. Returns the status. Does not wait for the end of a stream. */
  async function send(request: Request, body: Body | undefined): Promise<number> {
    const { method, path, parameters } = request;
    const exampleOf = (name: string) =>
      encodeURIComponent(parameters.find((each) => each.name === name)?.example ?? "");
    const query = parameters
      .filter(({ in: place, required }) => place === "query" && required)
      .map(({ name = "" }) => `${name}=${exampleOf(name)}`);
    const target = path.replaceAll(/\{(\w+)\}/g, (_, name) => exampleOf(name));
    const ending = new AbortController();
    const response = await fetch(`${demo.base_url}${target}?${query.join("&")}`, {
      method: method.toUpperCase(),
      headers: {
        authorization: `Bearer ${keyFor(request)}`,
        ...(body !== undefined && { "content-type": body.type }),
      },
      signal: ending.signal,
      ...(body !== undefined && { body: body.text }),
    });
    ending.abort();
    return response.status;
  }

  it("answers every example as served with success, except where it would end something", async () => {
    const outcomes = new Map<string, number>();
    for (const { operationId, responses } of await examples()) {
      if ([...creations, ...withoutExample].includes(operationId)) continue;
      const request = await example(operationId);
      for (const body of bodiesOf(request)) {
        const status = await send(request, body);
        expect(Object.keys(responses)).toContain(String(status));
        outcomes.set(operationId, Math.max(status, outcomes.get(operationId) ?? 0));
      }
    }
    const failed = [...outcomes].filter(([, status]) => status >= 300);
    expect(Object.fromEntries(failed)).toEqual({ ...endingRequests, ...forPeople });
    expect(outcomes.size).toBeGreaterThan(60);
  });
});
