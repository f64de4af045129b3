import { environmentHeader } from "@halyard/contracts";
import { nowMs } from "../time.ts";
import { callApi } from "./call-api.ts";
import { operatorToken, publicUrl } from "./services.ts";
import type { Tenant } from "./tenant.ts";

/** Number of sign-ins. Each uses another address, because of the rate limit per address. */
let signIns = 0;

/** Signs in a user by a link of the operator. Returns the headers of the session's requests. */
export async function signIn(
  managementUrl: string,
  { organizationId, environmentId }: Pick<Tenant, "organizationId" | "environmentId">,
  userId: string,
) {
  const links = `${managementUrl}/api/v1/organizations/${organizationId}/sign-in-links`;
  const { url } = await callApi<{ url: string }>(links, {
    ...{ method: "POST", token: operatorToken, body: { user_id: userId }, status: 201 },
  });
  signIns += 1;
  const response = await fetch(`${managementUrl}/auth/link/verify`, {
    method: "POST",
    headers: {
      ...{ origin: publicUrl, "content-type": "application/json" },
      "x-forwarded-for": `10.0.${signIns >> 8}.${signIns & 255}`,
    },
    body: JSON.stringify({ code: new URL(url).hash.split("=")[1] }),
  });
  const signedInMs = nowMs();
  const [cookie = ""] = response.headers.get("set-cookie")?.split(";") ?? [];
  if (cookie === "") throw new Error(`sign-in: ${response.status} ${await response.text()}`);
  return { signedInMs, headers: { Cookie: cookie, [environmentHeader]: environmentId } };
}
