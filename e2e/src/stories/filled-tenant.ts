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
  /** Name of the only chunk of the list of an audience, which has the same key as the flag. */
  sha256: string;
  /** The flag that uses the audience. */
  audienceFlagId: string;
  /** An open change request. */
  requestId: string;
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
  const audience = await createUsedAudience(tenant, gateway, flagKey);
  const { id: requestId } = await must(`${gateway}/api/v1/change-requests`, {
    method: "POST",
    key: tenant.serverKey,
    body: {
      title: "known",
      changes: [
        {
          ...{ kind: "state", flag_id: flagId, environment_id: tenant.environmentId },
          patch: { rollout_percentage: 12 },
        },
      ],
    },
  });
  return { ...tenant, flagId, flagKey, keyId: spare.id, ...audience, ...webhook, requestId };
}

/** Creates an audience with a list, and a flag that uses it. Returns the name of the list's chunk, and the flag's id. */
async function createUsedAudience({ serverKey: key }: Tenant, gateway: string, audience: string) {
  const send = (method: string, path: string, body: object) =>
    must(`${gateway}/api/v1/${path}`, { method, key, body });
  await send("POST", "audiences", { key: audience, name: audience });
  await send("PATCH", `audiences/${audience}/list`, { add: ["known"] });
  const { id: audienceFlagId } = await send("POST", "flags", {
    ...{ key: `for-${audience}`, name: audience, enabled: true },
    targeting_rules: [{ conditions: [{ audience }] }],
  });
  const sha256 = await eventually(async () => {
    const { audiences = {} } = await must(`${gateway}/api/v1/sdk/ruleset?format=2`, { key });
    return audiences[audience]?.list.chunks[0] as string | undefined;
  });
  return { sha256, audienceFlagId: audienceFlagId as string };
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
  requestId: tenant.requestId,
  webhookId: tenant.webhookId,
  deliveryId: tenant.deliveryId,
  // No tenant has a grant, an invitation or a passkey, so these name nothing.
  grantId: tenant.webhookId,
  invitationId: tenant.webhookId,
  passkeyId: tenant.webhookId,
  key: tenant.flagKey,
  sha256: tenant.sha256,
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
