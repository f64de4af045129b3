import { call } from "@halyard/testing";
import { must, operatorToken, type Tenant } from "./tenancy.ts";

/** The address at which people open a system without a gateway. */
export const publicUrl = "http://localhost:8080";

/** Headers of a browser with a session. */
export type BrowserHeaders = Record<string, string>;

/** Creates a user with a role in the project of a tenant, and signs in by the operator's link. */
export async function signIn(
  managementUrl: string,
  tenant: Tenant,
  { email, role }: { email: string; role: string },
): Promise<{ headers: BrowserHeaders; grantId: string }> {
  const operate = (path: string, body: object) =>
    must(`${managementUrl}/api/v1/organizations/${tenant.organizationId}/${path}`, {
      ...{ method: "POST", key: operatorToken, body },
    });
  const { id } = await operate("users", { email });
  const grant = await operate("grants", {
    ...{ subject: { user_id: id }, role, scope: { project: tenant.projectId } },
  });
  const { url } = await operate("sign-in-links", { user_id: id });
  const signedIn = await call(`${managementUrl}/auth/link/verify`, {
    method: "POST",
    headers: { origin: publicUrl },
    body: { code: new URL(url).hash.replace("#link=", "") },
  });
  const [cookie = ""] = signedIn.headers.getSetCookie().map((line) => line.split(";", 1)[0]);
  const headers = { cookie, origin: publicUrl, "halyard-environment": tenant.environmentId };
  return { headers, grantId: grant.id };
}
