import { jsonRequest, type RequestPlan } from "../http/requests.ts";
import { callApi, timedCall } from "./call-api.ts";
import { operatorToken, unlimitedPlan } from "./services.ts";

/** `flagKey` returns the key of a flag by its index in `flagIds`. */
export type Tenant = Awaited<ReturnType<typeof createTenant>>;
export const flagKey = (number: number) => `checkout-flow-variant-${number}`;
/** Number of concurrent requests, as in a typical script. */
const concurrency = 16;
type Created = { id: string; key?: string; environments?: readonly { id: string }[] };

/** Creates a resource through management's API, as the operator by default. */
export function create(
  managementUrl: string,
  { path, body, token = operatorToken }: { path: string; body: object; token?: string },
): Promise<Created> {
  return callApi(`${managementUrl}/api/v1/${path}`, { method: "POST", token, body, status: 201 });
}

/** Creates a project with flags. `settings` returns the state of each flag; disabled by default. */
export async function createTenant(
  managementUrl: string,
  flags: number,
  settings: (number: number) => object = () => ({}),
) {
  const operate = (path: string, body: object) => create(managementUrl, { path, body });
  const organization = await operate("organizations", { name: "Bench", plan: unlimitedPlan });
  const inOrganization = `organizations/${organization.id}`;
  const user = await operate(`${inOrganization}/users`, { email: "ada@example.com" });
  const environments = ["production"];
  const project = await operate(`${inOrganization}/projects`, { name: "Web", environments });
  const environmentId = project.environments?.[0]?.id ?? "";
  const ids = { userId: user.id, organizationId: organization.id, projectId: project.id };
  const tenant = { ...ids, environmentId };
  const serverKey = await createKey(managementUrl, tenant, "server");
  const clientKey = await createKey(managementUrl, tenant, "client");

  const createFlag = async (number: number) => {
    const name = `Checkout flow variant ${number}`;
    const body = { key: flagKey(number), name, ...settings(number) };
    return (await create(managementUrl, { path: "flags", token: serverKey, body })).id;
  };
  const flagIds: string[] = [];
  while (flagIds.length < flags) {
    const length = Math.min(concurrency, flags - flagIds.length);
    const batch = Array.from({ length }, (_, offset) => createFlag(flagIds.length + offset));
    flagIds.push(...(await Promise.all(batch)));
  }
  return { ...tenant, serverKey, clientKey, flagIds };
}

export async function createKey(
  managementUrl: string,
  { projectId, environmentId, userId }: Record<"projectId" | "environmentId" | "userId", string>,
  kind: "client" | "server",
): Promise<string> {
  const path = `projects/${projectId}/environments/${environmentId}/keys`;
  const body = { kind, name: kind, user_id: userId };
  return (await create(managementUrl, { path, body })).key ?? "";
}

export function patchFlag(
  managementUrl: string,
  { serverKey, flagIds }: Tenant,
  { number, enabled }: { number: number; enabled: boolean },
): Promise<{ sentMs: number; answeredMs: number }> {
  const url = `${managementUrl}/api/v1/flags/${flagIds[number]}`;
  return timedCall(url, { method: "PATCH", token: serverKey, body: { enabled } });
}

/** Returns a function that toggles one flag: it enables all flags in turn, then disables them. */
export function togglesInTurn(managementUrl: string, tenant: Tenant) {
  const { length } = tenant.flagIds;
  let made = 0;
  return () => {
    const [number, enabled] = [made % length, Math.floor(made / length) % 2 === 0];
    made += 1;
    return patchFlag(managementUrl, tenant, { number, enabled });
  };
}

export function togglePlans({ serverKey, flagIds }: Tenant): RequestPlan[] {
  return [true, false].flatMap((enabled) =>
    flagIds.map((id) =>
      jsonRequest(serverKey, { method: "PATCH", path: `/api/v1/flags/${id}`, body: { enabled } }),
    ),
  );
}
