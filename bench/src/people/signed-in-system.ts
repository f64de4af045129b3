import type { Bench } from "../benchmark.ts";
import { authorized } from "../http/requests.ts";
import { startBackends } from "../system/backends.ts";
import { callApi } from "../system/call-api.ts";
import { operatorToken, startManagement, startService } from "../system/services.ts";
import { signIn } from "../system/sign-in.ts";
import { createTenant } from "../system/tenant.ts";

export type SignedInSystem = Awaited<ReturnType<typeof startSignedInSystem>>;

/** Starts the services that verify sessions, and makes the user of a project an owner. */
export async function startSignedInSystem(bench: Bench) {
  const backends = await startBackends(bench);
  const [management, scheduler, metering, dispatcher] = await Promise.all([
    startManagement(bench, backends),
    startService(bench, "scheduler", backends),
    startService(bench, "usage-metering", backends),
    startService(bench, "webhook-dispatcher", backends),
  ]);
  const tenant = await createTenant(management.url, 1);
  const { organizationId, projectId, userId } = tenant;
  const organization = `${management.url}/api/v1/organizations/${organizationId}`;
  const operate = <Created>(path: string, body: object) =>
    callApi<Created>(`${organization}/${path}`, {
      ...{ method: "POST", token: operatorToken, body, status: 201 },
    });
  await operate("grants", {
    ...{ subject: { user_id: userId }, role: "owner", scope: { organization: organizationId } },
  });
  return {
    ...backends,
    metering,
    keyHeaders: authorized(tenant.serverKey),
    /** A route of each service, which the owner may read. */
    routes: {
      management: `${management.url}/api/v1/flags`,
      scheduler: `${scheduler.url}/api/v1/schedules`,
      "usage-metering": `${metering.url}/api/v1/usage`,
      "webhook-dispatcher": `${dispatcher.url}/api/v1/projects/${projectId}/webhooks`,
    },
    /** Signs in by a link of the operator. */
    signIn: () => signIn(management.url, tenant, userId),
  };
}
