import { demoUserEmail } from "@halyard/contracts";
import type { DemoCredentials } from "./credentials.ts";
import type { OperatorApi } from "./operator-api.ts";
import { StartError } from "./start-error.ts";

/**
 * The demo organization is made over the operator's routes, as everybody makes one. What is there
 * already is found by its name, so that a start that was interrupted half way is completed by the
 * next one. Only keys cannot be found again, since nobody keeps them but us: a kept key that no longer
 * works is replaced.
 */
export async function provideDemoData(
  api: OperatorApi,
  kept: DemoCredentials | undefined,
): Promise<DemoCredentials> {
  const organization = await findOrCreate<Named>(api, "/api/v1/organizations", {
    list: "organizations",
    matches: (found) => found.id === kept?.organization_id || (!kept && found.name === NAME),
    create: { name: NAME, plan: "pro" },
  });
  const organizationPath = `/api/v1/organizations/${organization.id}`;
  const user = await findOrCreate<Named & { email: string }>(api, `${organizationPath}/users`, {
    list: "users",
    matches: (found) => found.email === demoUserEmail,
    create: { email: demoUserEmail, name: NAME },
  });
  const project = await findOrCreate<Project>(api, `${organizationPath}/projects`, {
    list: "projects",
    matches: (found) => found.name === NAME,
    create: { name: NAME },
  });
  const environment = project.environments.find((found) => found.name === ENVIRONMENT);
  if (environment === undefined) {
    throw new StartError(`The demo project has no environment "${ENVIRONMENT}".`);
  }
  const place = {
    path: `/api/v1/projects/${project.id}/environments/${environment.id}/keys`,
    userId: user.id,
  };
  return {
    organization_id: organization.id,
    user_id: user.id,
    project_id: project.id,
    environment_id: environment.id,
    client_key: await provideKey(api, { ...place, kind: "client", kept: kept?.client_key }),
    server_key: await provideKey(api, { ...place, kind: "server", kept: kept?.server_key }),
  };
}

const NAME = "Demo";
const ENVIRONMENT = "development";

type Named = { id: string; name: string };
type Project = Named & { environments: Named[] };
type Key = { id: string; expires_at: string | null; revoked_at: string | null };

async function findOrCreate<T>(
  api: OperatorApi,
  path: string,
  wanted: { list: string; matches: (found: T) => boolean; create: unknown },
): Promise<T> {
  const found = await list<T>(api, path, wanted.list);
  return found.find(wanted.matches) ?? api.create<T>(path, wanted.create);
}

async function provideKey(
  api: OperatorApi,
  wanted: { path: string; userId: string; kind: "client" | "server"; kept: string | undefined },
): Promise<string> {
  const { path, kind, kept } = wanted;
  if (kept !== undefined) {
    const keys = await list<Key>(api, path, "keys");
    const record = keys.find((key) => key.id === kept.split("_")[1]);
    if (record !== undefined && works(record)) return kept;
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
