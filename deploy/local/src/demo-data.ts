import { demoUserEmail } from "@halyard/contracts";
import type { DemoCredentials } from "./credentials.ts";
import type { OperatorApi } from "./operator-api.ts";
import { StartError } from "./start-error.ts";

/**
 * Provides the demo organization over the operator's routes. Everything that exists is found by the id that the home
 * keeps, so a rename changes nothing, otherwise by its name, so the next start completes an interrupted one. What was
 * deleted is created again. The user is found by its address alone, because production finds demo keys by it. A kept
 * key that no longer works is replaced, because only the home knows a key.
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

/** A rotated key has an end, too, so any end counts: better a new key than one that ends soon. */
function works(key: Key): boolean {
  return key.revoked_at === null && key.expires_at === null;
}

async function list<T>(api: OperatorApi, path: string, name: string): Promise<T[]> {
  const answer = await api.get<Record<string, T[]>>(path);
  const items = answer.status === 200 ? answer.body[name] : undefined;
  if (items !== undefined) return items;
  throw new StartError(
    `The demo data could not be read: GET ${path} answered ${answer.status} ${JSON.stringify(answer.body)}.`,
  );
}
