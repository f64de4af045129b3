import { call } from "@halyard/testing";
import { must, operatorToken, type Tenant } from "./tenancy.ts";

/** The address at which people open a system without a gateway. */
export const publicUrl = "http://localhost:8080";

/** Headers of a browser with a session. */
export type BrowserHeaders = Record<string, string>;

/** Creates a user with a role in the project of a tenant, and signs in by the operator's link. */
export async function signIn(
  managementUrl: string,
  { organizationId, projectId, environmentId }: Tenant,
  { email, role }: { email: string; role: string },
): Promise<{ headers: BrowserHeaders; grantId: string }> {
  const operate = (path: string, body: object) =>
    must(`${managementUrl}/api/v1/organizations/${organizationId}/${path}`, {
      ...{ method: "POST", key: operatorToken, body },
    });
  const { id: userId } = await operate("users", { email });
  const grant = await operate("grants", {
    ...{ subject: { user_id: userId }, role, scope: { project: projectId } },
  });
  const browser = { organizationId, userId, origin: publicUrl };
  const headers = await signInByLink(managementUrl, browser);
  return { headers: { ...headers, "halyard-environment": environmentId }, grantId: grant.id };
}

/**
 * Signs in a user by a link of the operator. Returns the headers of the browser, whose pages have this origin. Management
 * limits sign-ins by address; `address` is that of the browser, if management trusts the test as a proxy.
 */
export async function signInByLink(
  managementUrl: string,
  {
    organizationId,
    userId,
    origin,
    address,
  }: { organizationId: string; userId: string; origin: string; address?: string },
): Promise<BrowserHeaders> {
  const links = `${managementUrl}/api/v1/organizations/${organizationId}/sign-in-links`;
  const { url } = await must(links, {
    ...{ method: "POST", key: operatorToken, body: { user_id: userId } },
  });
  const { headers } = await call(`${managementUrl}/auth/link/verify`, {
    method: "POST",
    headers: { origin, ...(address && { "x-forwarded-for": address }) },
    body: { code: new URL(url).hash.replace("#link=", "") },
  });
  const [cookie] = headers.getSetCookie().map((line) => line.split(";", 1)[0]);
  if (cookie === undefined) throw new Error("the link did not sign in");
  return { cookie, origin };
}
