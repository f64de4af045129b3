import { operatorToken, unlimitedPlan } from "./services.ts";

/** A project with flags, created through management's API. */
export type Tenant = {
  serverKey: string;
  clientKey: string;
  /** The user of both keys. */
  userId: string;
  organizationId: string;
  projectId: string;
  environmentId: string;
  /** Ids of the flags; `flagKey` returns the key of a flag by its index. */
  flagIds: readonly string[];
};

export const flagKey = (number: number) => `checkout-flow-variant-${number}`;

/** Number of concurrent requests, as in a typical script. */
const concurrency = 16;

export async function createTenant(
  managementUrl: string,
  flags: number,
  /** State of each flag; disabled by default. */
  settings: (number: number) => object = () => ({}),
): Promise<Tenant> {
  const operate = (path: string, body: object) => create(managementUrl, { path, body });

  const organization = await operate("organizations", { name: "Bench", plan: unlimitedPlan });
  const user = await operate(`organizations/${organization.id}/users`, {
    email: "ada@example.com",
  });
  const project = await operate(`organizations/${organization.id}/projects`, {
    name: "Web",
    environments: ["production"],
  });
  const environmentId = project.environments?.[0]?.id ?? "";
  const keys = `projects/${project.id}/environments/${environmentId}/keys`;
  const issue = async (kind: "client" | "server") =>
    (await operate(keys, { kind, name: kind, user_id: user.id })).key ?? "";
  const serverKey = await issue("server");
  const clientKey = await issue("client");

  const flagIds: string[] = [];
  for (let number = 0; number < flags; number += concurrency) {
    const batch = Array.from({ length: Math.min(concurrency, flags - number) }, (_, offset) =>
      create(managementUrl, {
        path: "flags",
        token: serverKey,
        body: {
          key: flagKey(number + offset),
          name: `Checkout flow variant ${number + offset}`,
          ...settings(number + offset),
        },
      }),
    );
    for (const { id } of await Promise.all(batch)) flagIds.push(id);
  }
  return {
    serverKey,
    clientKey,
    userId: user.id,
    organizationId: organization.id,
    projectId: project.id,
    environmentId,
    flagIds,
  };
}

/** Creates a resource through management's API, as the operator by default. */
export async function create(
  managementUrl: string,
  { path, body, token = operatorToken }: { path: string; body: object; token?: string },
): Promise<Created> {
  const response = await fetch(`${managementUrl}/api/v1/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (response.status !== 201)
    throw new Error(`POST ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Created;
}

type Created = { id: string; key?: string; environments?: readonly { id: string }[] };
