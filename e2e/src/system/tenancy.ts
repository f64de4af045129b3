import type { KeyKind } from "@halyard/contracts";
import { type Called, type CallOptions, call } from "@halyard/testing";

/** Tasks of the operator, through the API's routes for operators. */
export const operatorToken = "an operator token for the tests only";

/** An organization with a project, a user, and keys for two of the project's environments. */
export type Tenant = {
  organizationId: string;
  userId: string;
  projectId: string;
  environmentId: string;
  otherEnvironmentId: string;
  serverKey: string;
  clientKey: string;
  readerKey: string;
  environmentOnlyKey: string;
  otherServerKey: string;
};

/** Sends a request, and throws unless it succeeds. */
export async function must(url: string, options: CallOptions): Promise<Called["body"]> {
  const answer = await call(url, options);
  if (answer.status >= 300)
    throw new Error(
      `${options.method ?? "GET"} ${url}: ${answer.status} ${JSON.stringify(answer.body)}`,
    );
  return answer.body;
}

export async function createTenant(
  managementUrl: string,
  options: { name: string; plan?: string },
): Promise<Tenant> {
  const operate = operatorOf(managementUrl);
  const organization = await operate("organizations", {
    name: options.name,
    plan: options.plan ?? "pro",
  });
  const user = await operate(`organizations/${organization.id}/users`, {
    email: "ada@example.com",
    name: "Ada",
  });
  return createProject(managementUrl, {
    organizationId: organization.id,
    userId: user.id,
    name: "Web",
  });
}

/** Adds a user to the tenant's organization. Returns a server key of this user for the tenant's environment. */
export async function addPerson(
  managementUrl: string,
  { organizationId, projectId, environmentId }: Tenant,
  email: string,
): Promise<string> {
  const operate = operatorOf(managementUrl);
  const user = await operate(`organizations/${organizationId}/users`, { email, name: email });
  const keys = `projects/${projectId}/environments/${environmentId}/keys`;
  return (await operate(keys, { kind: "server", name: email, user_id: user.id })).key;
}

const operatorOf = (managementUrl: string) => (path: string, body: unknown) =>
  must(`${managementUrl}/api/v1/${path}`, { method: "POST", key: operatorToken, body });

/** Creates a project with keys in an existing organization. */
export async function createProject(
  managementUrl: string,
  { organizationId, userId, name }: { organizationId: string; userId: string; name: string },
): Promise<Tenant> {
  const operate = operatorOf(managementUrl);
  const project = await operate(`organizations/${organizationId}/projects`, {
    name,
    environments: ["production", "staging"],
  });
  const [environment, other] = project.environments as { id: string; name: string }[];
  if (environment === undefined || other === undefined) throw new Error("two environments");
  const issue = async (kind: KeyKind, environmentId: string, { environment_only = false } = {}) => {
    const issued = await operate(`projects/${project.id}/environments/${environmentId}/keys`, {
      kind,
      name: kind,
      user_id: userId,
      environment_only,
    });
    return issued.key as string;
  };
  return {
    organizationId,
    userId,
    projectId: project.id,
    environmentId: environment.id,
    otherEnvironmentId: other.id,
    serverKey: await issue("server", environment.id),
    clientKey: await issue("client", environment.id),
    environmentOnlyKey: await issue("server", environment.id, { environment_only: true }),
    otherServerKey: await issue("server", other.id),
    readerKey: await issue("reader", environment.id),
  };
}

/** Plans that tests configure in addition to the default ones. */
type Limits = {
  requests_per_month: number | null;
  sse_connections: number | null;
  projects: number | null;
};

const noLimits: Limits = {
  requests_per_month: null,
  sse_connections: null,
  projects: null,
};

/** Returns the value of `PLANS`. A limit that is not given is unlimited. */
export function plansText(plans: Readonly<Record<string, Partial<Limits>>>): string {
  const whole = Object.entries(plans).map(([name, limits]) => [name, { ...noLimits, ...limits }]);
  return JSON.stringify(Object.fromEntries(whole));
}
