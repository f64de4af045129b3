import { demoUserEmail } from "@halyard/contracts";
import { StartError } from "@halyard/local-backends";
import type { DemoCredentials } from "./credentials.ts";

/** Timeout of a request. A write takes up to 500 ms without JetStream; the rest allows for a machine under load. */
const ANSWER_TIMEOUT_MS = 30_000;

export type Answer<T> = { status: number; body: T };

/** Client of the API's routes for operators. */
export type OperatorApi = {
  get<T>(path: string): Promise<Answer<T>>;
  /**
   * Returns the created resource.
   *
   * @throws StartError for an answer other than 201
   */
  create<T>(path: string, body: unknown): Promise<T>;
};

export function createOperatorApi(options: { baseUrl: string; token: string }): OperatorApi {
  const call = async <T>(method: string, path: string, body?: unknown): Promise<Answer<T>> => {
    const response = await fetch(new URL(path, options.baseUrl), {
      method,
      headers: { authorization: `Bearer ${options.token}`, "content-type": "application/json" },
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as T };
  };
  return {
    get: (path) => call("GET", path),
    async create<T>(path: string, body: unknown) {
      const answer = await call<T>("POST", path, body);
      if (answer.status === 201) return answer.body;
      throw new StartError(
        `Could not create the demo data: POST ${path} returned ${answer.status} ${JSON.stringify(answer.body)}.`,
      );
    },
  };
}

/**
 * Provides the demo organization through the API's routes for operators. An existing resource is found by the id that
 * the home has stored, so that it may be renamed. Otherwise it is found by its name, so that the next start completes
 * an interrupted one. Deleted resources are created again. The user is found by its address only, because production
 * detects demo keys by that address. A key that no longer works is replaced, because only the home stores its text.
 */
export async function provideDemoData(
  api: OperatorApi,
  kept: DemoCredentials | undefined,
): Promise<DemoCredentials> {
  const organization = await findOrCreate<Named>(api, "/api/v1/organizations", {
    list: "organizations",
    id: kept?.organization_id,
    matches: (found) => found.name === NAME,
    create: { name: NAME, plan: "pro" },
  });
  const organizationPath = `/api/v1/organizations/${organization.id}`;
  const user = await findOrCreate<Named & { email: string }>(api, `${organizationPath}/users`, {
    list: "users",
    matches: (found) => found.email.toLowerCase() === demoUserEmail,
    create: { email: demoUserEmail, name: NAME },
  });
  const project = await findOrCreate<Named>(api, `${organizationPath}/projects`, {
    list: "projects",
    id: kept?.project_id,
    matches: (found) => found.name === NAME,
    create: { name: NAME },
  });
  const environments = `/api/v1/projects/${project.id}/environments`;
  const environment = await findOrCreate<Named>(api, environments, {
    list: "environments",
    id: kept?.environment_id,
    matches: (found) => found.name === ENVIRONMENT,
    create: { name: ENVIRONMENT },
  });
  const scope = { path: `${environments}/${environment.id}/keys`, userId: user.id };
  return {
    organization_id: organization.id,
    user_id: user.id,
    project_id: project.id,
    environment_id: environment.id,
    client_key: await provideKey(api, { ...scope, kind: "client", kept: kept?.client_key }),
    server_key: await provideKey(api, { ...scope, kind: "server", kept: kept?.server_key }),
  };
}

const NAME = "Demo";
const ENVIRONMENT = "development";

type Named = { id: string; name: string };
type Key = { id: string; user_id: string; expires_at: string | null; revoked_at: string | null };

async function findOrCreate<T extends Named>(
  api: OperatorApi,
  path: string,
  wanted: {
    list: string;
    id?: string | undefined;
    matches: (found: T) => boolean;
    create: unknown;
  },
): Promise<T> {
  const found = await list<T>(api, path, wanted.list);
  return (
    found.find(({ id }) => id === wanted.id) ??
    found.find(wanted.matches) ??
    api.create<T>(path, wanted.create)
  );
}

async function provideKey(
  api: OperatorApi,
  wanted: { path: string; userId: string; kind: "client" | "server"; kept: string | undefined },
): Promise<string> {
  const { path, kind, kept } = wanted;
  if (kept !== undefined) {
    const keys = await list<Key>(api, path, "keys");
    const record = keys.find((key) => key.id === kept.split("_")[1]);
    if (record?.user_id === wanted.userId && works(record)) return kept;
  }
  const body = { kind, name: `Demo ${kind}`, user_id: wanted.userId };
  return (await api.create<{ key: string }>(path, body)).key;
}

/** Returns whether the key has no end. A rotated key ends soon, so any key with an end is replaced. */
function works(key: Key): boolean {
  return key.revoked_at === null && key.expires_at === null;
}

async function list<T>(api: OperatorApi, path: string, name: string): Promise<T[]> {
  const answer = await api.get<Record<string, T[]>>(path);
  const items = answer.status === 200 ? answer.body[name] : undefined;
  if (items !== undefined) return items;
  throw new StartError(
    `Could not read the demo data: GET ${path} returned ${answer.status} ${JSON.stringify(answer.body)}.`,
  );
}

/** Reads the audit log instead of the flags, because a request with the demo's key would change its last use. */
export async function hasDemoFlags(api: OperatorApi, projectId: string): Promise<boolean> {
  type Change = { flag_id: string | null; action: string };
  const path = `/api/v1/projects/${projectId}/changes?limit=1000`;
  const { body } = await api.get<{ changes: Change[] }>(path);
  const newest = new Map<string, string>();
  for (const { flag_id, action } of body.changes)
    if (flag_id !== null && !newest.has(flag_id)) newest.set(flag_id, action);
  return [...newest.values()].some((action) => action !== "deleted");
}
