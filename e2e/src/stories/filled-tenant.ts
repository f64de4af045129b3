import { eventually } from "@halyard/testing";
import { must, operatorToken, type Tenant } from "../system/tenancy.ts";
import { createFlags } from "../traffic/changes.ts";
import type { Operation } from "../traffic/openapi.ts";

/** A tenant with one resource for every path parameter of the OpenAPI document. */
export type FilledTenant = Tenant & {
  flagId: string;
  flagKey: string;
  keyId: string;
  webhookId: string;
  deliveryId: string;
};

/** A time in the far future, so that schedules stay pending. */
export const enableAt = "2099-01-01T00:00:00Z";

export async function fillTenant(
  tenant: Tenant,
  addresses: { gateway: string; receiver: string },
  flagKey = "a-flag",
): Promise<FilledTenant> {
  const { gateway } = addresses;
  const [flag] = await createFlags(gateway, tenant.serverKey, [flagKey]);
  const keys = `projects/${tenant.projectId}/environments/${tenant.environmentId}/keys`;
  const spare = await must(`${gateway}/api/v1/${keys}`, {
    method: "POST",
    key: operatorToken,
    body: { kind: "server", name: "spare", user_id: tenant.userId },
  });
  const flagId = flag?.id as string;
  await must(`${gateway}/api/v1/flags/${flagId}/environments/${tenant.environmentId}/schedule`, {
    method: "POST",
    key: tenant.serverKey,
    body: { enable_at: enableAt },
  });
  const webhook = await createUsedWebhook(tenant, flagId, addresses);
  return { ...tenant, flagId, flagKey, keyId: spare.id, ...webhook };
}

/** Creates a webhook, and waits until its only delivery has arrived, so that no delivery is pending. */
async function createUsedWebhook(
  tenant: Tenant,
  flagId: string,
  { gateway, receiver }: { gateway: string; receiver: string },
) {
  const key = tenant.serverKey;
  const webhooks = `${gateway}/api/v1/projects/${tenant.projectId}/webhooks`;
  const body = { name: "known", url: receiver, events: ["flag.toggled"], secret: "known" };
  const { id: webhookId } = await must(webhooks, { method: "POST", key, body });
  const flag = `${gateway}/api/v1/flags/${flagId}`;
  await must(flag, { method: "PATCH", key, body: { enabled: true } });
  const delivery = await eventually(async () => {
    const { deliveries } = await must(`${webhooks}/${webhookId}/deliveries`, { key });
    const [first] = deliveries as { id: string; status: string }[];
    return first?.status === "delivered" ? first : undefined;
  });
  return { webhookId: webhookId as string, deliveryId: delivery.id };
}

/** Returns a tenant's ids by the names of path parameters. */
export const idsOf = (tenant: FilledTenant): Record<string, string> => ({
  organizationId: tenant.organizationId,
  projectId: tenant.projectId,
  environmentId: tenant.environmentId,
  envId: tenant.environmentId,
  id: tenant.flagId,
  flagId: tenant.flagId,
  keyId: tenant.keyId,
  userId: tenant.userId,
  webhookId: tenant.webhookId,
  deliveryId: tenant.deliveryId,
  key: tenant.flagKey,
  format: "2",
});

/** Returns the id for a parameter. Fails for a parameter that `idsOf` does not know. */
export function idIn(ids: Record<string, string>, name: string): string {
  const id = ids[name];
  if (id === undefined) throw new Error(`unknown parameter ${name}; add it to idsOf`);
  return id;
}

/** Returns the path of an operation with ids in place of its parameters, and its required query. */
export function pathOf(operation: Operation, ids: Record<string, string>): string {
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => idIn(ids, name));
  const required = operation.queryParameters.filter((parameter) => parameter.required);
  // A deletion repeats the id of its resource as `confirm`.
  const resourceId = operation.pathParameters.at(-1) ?? "";
  const query = required
    .map(({ name }) => `${name}=${idIn(ids, name === "confirm" ? resourceId : name)}`)
    .join("&");
  return query === "" ? path : `${path}?${query}`;
}
