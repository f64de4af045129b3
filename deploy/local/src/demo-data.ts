import { demoUserEmail, type KeyKind } from "@halyard/contracts";
import { StartError } from "@halyard/local-backends";
import type { DemoCredentials } from "./credentials.ts";

/** Timeout of a request. A write takes up to 500 ms without JetStream; the rest allows for a machine under load. */
const ANSWER_TIMEOUT_MS = 30_000;

/**
 * Sends a request to the API's routes for operators: with a body a POST, without one a GET. Returns the response body.
 *
 * @throws StartError for an error response
 */
export type OperatorApi = <T>(path: string, body?: unknown) => Promise<T>;

export function createOperatorApi(options: { baseUrl: string; token: string }): OperatorApi {
  return async <T>(path: string, body?: unknown) => {
    const method = body === undefined ? "GET" : "POST";
    const response = await fetch(new URL(path, options.baseUrl), {
      method,
      headers: { authorization: `Bearer ${options.token}`, "content-type": "application/json" },
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (response.ok) return (await response.json()) as T;
    throw new StartError(
      `Could not provide the demo data: ${method} ${path} returned ${response.status} ${await response.text()}.`,
    );
  };
}

/**
 * Provides the demo organization through the API's routes for operators. An existing resource is found by the id that
 * the home has stored, so that it may be renamed. Otherwise it is found by its name, so that the next start completes
 * an interrupted one. Deleted resources are created again. The user is an owner. The user is found by its address only, because production
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
  await findOrCreate<Grant>(api, `${organizationPath}/grants`, {
    list: "grants",
    matches: ({ subject, role }) => subject.user_id === user.id && role === "owner",
    create: {
      ...{ subject: { user_id: user.id }, role: "owner" },
      scope: { organization: organization.id },
    },
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
    reader_key: await provideKey(api, { ...scope, kind: "reader", kept: kept?.reader_key }),
  };
}

const NAME = "Demo";
const ENVIRONMENT = "development";

type Named = { id: string; name: string };
type Grant = { id: string; subject: { user_id?: string }; role: string };
type Key = { id: string; user_id: string; expires_at: string | null; revoked_at: string | null };

async function findOrCreate<T extends { id: string }>(
  api: OperatorApi,
  path: string,
  wanted: {
    list: string;
    id?: string | undefined;
    matches: (found: T) => boolean;
    create: unknown;
  },
): Promise<T> {
  const found = (await api<Record<string, T[]>>(path))[wanted.list] ?? [];
  return (
    found.find(({ id }) => id === wanted.id) ??
    found.find(wanted.matches) ??
    api<T>(path, wanted.create)
  );
}

/** Returns the stored key if it has no end. A rotated key ends soon, so any key with an end is replaced. */
async function provideKey(
  api: OperatorApi,
  wanted: { path: string; userId: string; kind: KeyKind; kept: string | undefined },
): Promise<string> {
  const { path, kind, kept, userId } = wanted;
  const { keys } = await api<{ keys: Key[] }>(path);
  const record = keys.find((key) => key.id === kept?.split("_")[1]);
  const isEndless = record?.revoked_at === null && record.expires_at === null;
  if (kept !== undefined && isEndless && record.user_id === userId) return kept;
  const body = { kind, name: `Demo ${kind}`, user_id: userId };
  return (await api<{ key: string }>(path, body)).key;
}

/** Creates a link that signs in the demo's user once, within five minutes. Returns its address. */
export async function createSignInLink(
  api: OperatorApi,
  { organization_id: organizationId, user_id }: DemoCredentials,
): Promise<string> {
  const path = `/api/v1/organizations/${organizationId}/sign-in-links`;
  return (await api<{ url: string }>(path, { user_id })).url;
}

/** Reads the audit log instead of the flags, because a request with the demo's key would change its last use. */
export async function hasDemoFlags(api: OperatorApi, projectId: string): Promise<boolean> {
  type Change = { flag_id: string | null; action: string };
  const path = `/api/v1/projects/${projectId}/changes?limit=1000`;
  const { changes } = await api<{ changes: Change[] }>(path);
  const byFlag = Map.groupBy(changes, ({ flag_id: id }) => id);
  byFlag.delete(null);
  return [...byFlag.values()].some(([newest]) => newest?.action !== "deleted");
}
