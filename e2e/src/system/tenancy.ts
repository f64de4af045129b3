import { type Called, type CallOptions, call } from "@halyard/testing";

/** The operator's work, by the routes that an operator has. */
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
  environmentOnlyKey: string;
  otherServerKey: string;
};

/** Asks and insists on an answer of success. */
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

const operatorOf = (managementUrl: string) => (path: string, body: unknown) =>
  must(`${managementUrl}/api/v1/${path}`, { method: "POST", key: operatorToken, body });

/** Creates a project with keys in an organization that exists. */
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
  const issue = async (
    kind: "client" | "server",
    environmentId: string,
    { environment_only = false } = {},
  ) => {
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
  };
}

/**
 * Plans that tests configure beside the default ones. What a test is not about should not meet a limit:
 * on `unlimited` there is none.
 */
export type Limits = {
  requests_per_month: number | null;
  sse_connections: number | null;
  projects: number | null;
};

export const noLimits: Limits = {
  requests_per_month: null,
  sse_connections: null,
  projects: null,
};

/** The text of `PLANS`; what a plan does not mention is unlimited. */
export function plansText(plans: Readonly<Record<string, Partial<Limits>>> = {}): string {
  const whole = Object.entries(plans).map(([name, limits]) => [name, { ...noLimits, ...limits }]);
  return JSON.stringify({ unlimited: noLimits, ...Object.fromEntries(whole) });
}
