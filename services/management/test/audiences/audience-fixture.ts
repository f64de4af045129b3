import { Agent, request as openRequest } from "node:http";
import { expect } from "@jest/globals";
import type { Management, seedProject } from "../management-fixture.ts";
import { entriesOf } from "../tenancy-fixture.ts";

type Project = Pick<
  Awaited<ReturnType<typeof seedProject>>,
  "organizationId" | "projectId" | "serverKey"
>;

/** Creates and changes audiences with the project's server key, and reads their entries and events. */
export function audiencesOf(management: Management, project: Project) {
  let counter = 0;
  const key = project.serverKey;
  const path = (name: string, rest = "") => `/api/v1/audiences/${name}${rest}`;

  const call = (
    target: string,
    options: {
      method?: string;
      body?: unknown;
      headers?: Record<string, string>;
      key?: string;
    } = {},
  ) => management.call(target, { key, ...options });

  async function create(body: Record<string, unknown> = {}) {
    const given = { key: `audience-${++counter}`, name: "An audience", ...body };
    const answer = await call("/api/v1/audiences", { method: "POST", body: given });
    expect(answer.status).toBe(201);
    return answer.body;
  }

  const read = async (name: string) => (await call(path(name))).body;

  /** Uploads a list. */
  async function upload(
    name: string,
    body: string | Buffer,
    {
      query = "",
      type = "text/csv",
      headers = {},
      uploadKey = key,
    }: {
      query?: string;
      type?: string;
      headers?: Record<string, string>;
      uploadKey?: string;
    } = {},
  ) {
    const response = await fetch(`${management.url}${path(name, `/list${query}`)}`, {
      method: "PUT",
      headers: { authorization: `Bearer ${uploadKey}`, "content-type": type, ...headers },
      body: new Uint8Array(Buffer.from(body)),
    });
    // biome-ignore lint/suspicious/noExplicitAny: tests read resources and problems.
    const answer = (await response.json()) as any;
    return { status: response.status, headers: response.headers, body: answer };
  }

  /** Begins an upload whose body the caller writes. */
  function openUpload(name: string) {
    const request = openRequest(`${management.url}${path(name, "/list")}`, {
      method: "PUT",
      agent: new Agent(),
      headers: { authorization: `Bearer ${key}`, "content-type": "text/csv" },
    });
    const answer = new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
      request.once("error", reject);
      request.once("response", (response) => {
        const status = response.statusCode;
        response.toArray().then((parts) => {
          resolve({ status, body: Buffer.concat(parts).toString() });
        }, reject);
      });
    });
    answer.catch(() => undefined);
    return { request, answer };
  }

  const change = (name: string, body: unknown, headers: Record<string, string> = {}) =>
    call(path(name, "/list"), { method: "PATCH", body, headers });

  const hasMember = async (name: string, member: string): Promise<boolean> => {
    const answer = await call(path(name, "/list/lookup"), { method: "POST", body: { member } });
    return answer.body.member;
  };

  async function idOf(name: string): Promise<string> {
    const [row] = await management.sql<[{ id: string }]>`
      select id from audiences where project_id = ${project.projectId} and key = ${name}`;
    return row.id;
  }

  /** Returns the snapshot entries of an audience, oldest first. */
  const entries = (id: string) =>
    entriesOf(management, `${project.organizationId}.audience.${project.projectId}.${id}`);

  async function events(name: string) {
    const rows = await management.sql<{ payload: string }[]>`
      select payload from outbox where stream = 'events' order by id`;
    return rows
      .map((row) => JSON.parse(row.payload))
      .filter((event) => event.audience?.key === name);
  }

  return { path, call, create, read, upload, openUpload, change, hasMember, idOf, entries, events };
}
