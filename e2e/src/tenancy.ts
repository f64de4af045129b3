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
  const operate = (path: string, body: unknown) =>
    must(`${managementUrl}/api/v1/${path}`, { method: "POST", key: operatorToken, body });
  const organization = await operate("organizations", {
    name: options.name,
    plan: options.plan ?? "pro",
  });
  const user = await operate(`organizations/${organization.id}/users`, {
    email: "ada@example.com",
    name: "Ada",
  });
  const project = await operate(`organizations/${organization.id}/projects`, {
    name: "Web",
    environments: ["production", "staging"],
  });
  const [environment, other] = project.environments as { id: string; name: string }[];
  if (environment === undefined || other === undefined) throw new Error("two environments");
  const issue = async (kind: "client" | "server", environmentId: string) => {
    const issued = await operate(`projects/${project.id}/environments/${environmentId}/keys`, {
      kind,
      name: kind,
      user_id: user.id,
    });
    return issued.key as string;
  };
  return {
    organizationId: organization.id,
    userId: user.id,
    projectId: project.id,
    environmentId: environment.id,
    otherEnvironmentId: other.id,
    serverKey: await issue("server", environment.id),
    clientKey: await issue("client", environment.id),
    otherServerKey: await issue("server", other.id),
  };
}
