import { randomInt } from "node:crypto";
import type { Sql } from "@halyard/postgres";
import { createLogger } from "@halyard/service";
import { v7 as uuidv7 } from "uuid";
import { insertUser } from "../../src/keys/user-store.ts";
import type { AdmissionSettings, OidcSettings } from "../../src/sign-in/settings.ts";
import { insertOrganization } from "../../src/tenancy/organization-store.ts";
import { openManagement } from "../management-fixture.ts";
import { clientId } from "./given-issuer.ts";

/** Opens management with an identity provider. */
export async function openSignIn(
  issuer: string,
  options: { admission?: Partial<AdmissionSettings>; clientSecret?: string } = {},
) {
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  const logger = createLogger({ service: "management", level: "trace", destination });
  const admission: AdmissionSettings = {
    ...{ trustedDomains: [], autoJoin: undefined, groupsOrganizations: [] },
    ...options.admission,
  };
  const oidc: OidcSettings = {
    ...{ issuer, clientId, clientSecret: options.clientSecret ?? "a client's secret", admission },
    ...{ scopes: "openid email profile", groupsClaim: "groups" },
  };
  const publicUrl = new URL("http://127.0.0.1");
  const management = await openManagement({
    signIn: { publicUrl, oidc, passkeys: false, byOperator: false },
    trustedProxies: ["127.0.0.1"],
    logger,
  });
  /** Returns the session of a browser. */
  const sessionOf = ({ cookies }: Pick<Browser, "cookies">) =>
    management.findSession([...cookies].map(([name, value]) => `${name}=${value}`).join("; "));
  return { ...management, lines, oidc, sessionOf, browser: () => createBrowser(management.url) };
}

export type SignIn = Awaited<ReturnType<typeof openSignIn>>;

/** A browser with cookies. Each has its own address, because requests are limited by address. */
export function createBrowser(origin: string) {
  const cookies = new Map<string, string>();
  const address = Array.from({ length: 4 }, () => randomInt(1, 255)).join(".");

  async function request(target: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    const sent = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    if (sent !== "") headers.set("cookie", sent);
    headers.set("x-forwarded-for", address);
    const response = await fetch(new URL(target, origin), { ...init, headers, redirect: "manual" });
    for (const line of response.headers.getSetCookie()) {
      const [pair = "", ...attributes] = line.split(/;\s*/);
      const [name = ""] = pair.split("=", 1);
      const isRemoved = attributes.some((attribute) =>
        /^max-age=0$|^expires=Thu, 01 Jan 1970/i.test(attribute),
      );
      if (isRemoved) cookies.delete(name);
      else cookies.set(name, pair.slice(name.length + 1));
    }
    return response;
  }

  return {
    cookies,
    request,
    /** Begins a sign-in. Returns the parameters of the authorization request. */
    async begin(query = ""): Promise<{ state: string; nonce: string; location: URL }> {
      const response = await request(`/auth/oidc/start${query}`);
      const location = new URL(response.headers.get("location") ?? "");
      const [state = "", nonce = ""] = ["state", "nonce"].map(
        (name) => location.searchParams.get(name) ?? "",
      );
      return { state, nonce, location };
    },
    /** Requests the callback with these parameters. Returns the target of the redirect. */
    async callback(
      parameters: Record<string, string>,
    ): Promise<{ page: URL; problem: string | null }> {
      const response = await request(`/auth/oidc/callback?${new URLSearchParams(parameters)}`);
      const page = new URL(response.headers.get("location") ?? "");
      return { page, problem: page.searchParams.get("problem") };
    },
    hasSession: () => [...cookies.keys()].some((name) => name.startsWith("halyard-session-")),
  };
}

export type Browser = ReturnType<typeof createBrowser>;

/** Creates an organization with users of these addresses. Returns the id of the organization, and those of the users. */
export async function seedOrganization(
  { sql }: { sql: Sql },
  ...emails: string[]
): Promise<{ organizationId: string; userIds: string[] }> {
  const createdAt = new Date();
  const organizationId = uuidv7();
  const users = emails.map((email) => {
    const person = { kind: "person", personId: null } as const;
    return { id: uuidv7(), organizationId, ...person, email, name: null, createdAt };
  });
  await sql.begin(async (tx) => {
    const added = { id: organizationId, name: "Acme", plan: "free", version: 1, createdAt };
    await insertOrganization(tx, { ...added, updatedAt: createdAt });
    for (const user of users) await insertUser(tx, user);
  });
  return { organizationId, userIds: users.map(({ id }) => id) };
}

/** Returns the person whom a user represents; null for none. */
export async function personOf({ sql }: { sql: Sql }, userId = ""): Promise<string | null> {
  const [user] = await sql<{ personId: string | null }[]>`
    select person_id as "personId" from users where id = ${userId}`;
  return user?.personId ?? null;
}
