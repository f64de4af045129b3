import { call } from "@halyard/testing";
import { must, operatorToken } from "./tenancy.ts";

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
): Promise<{ cookie: string; origin: string }> {
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
