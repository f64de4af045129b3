import type { Rate } from "@halyard/rate-limit";
import { createLogger } from "@halyard/service";
import {
  type Ceremony,
  createPasskey,
  type SoftwarePasskey,
  signWithPasskey,
} from "@halyard/testing";
import { type Management, openManagement, operatorToken } from "../management-fixture.ts";
import { tenancyOf } from "../tenancy-fixture.ts";
import { createBrowser } from "./sign-in-fixture.ts";

/** Opens management without a provider: people sign in by passkeys and by the operator's links. */
export async function openPeople(
  options: {
    byOperator?: boolean;
    passkeys?: boolean;
    keyRate?: Rate;
    /** Backends of the test, in place of new ones. */
    over?: Management["backends"];
  } = {},
) {
  const publicUrl = new URL("http://localhost");
  const { byOperator = true, passkeys = true, keyRate, over } = options;
  const lines: string[] = [];
  const management = await openManagement({
    signIn: { publicUrl, oidc: undefined, passkeys, byOperator },
    trustedProxies: ["127.0.0.1"],
    ...(keyRate && { keyRate }),
    ...(over && { over }),
    logger: createLogger({
      ...{ service: "management", level: "info" },
      destination: { write: (line: string) => lines.push(line) },
    }),
  });
  const given = tenancyOf(management);
  const ceremony = (challenge: string): Ceremony => ({
    ...{ challenge, origin: publicUrl.origin, rpId: publicUrl.hostname },
  });

  /** A browser whose requests come from pages of this installation. */
  function browser() {
    const { request, cookies } = createBrowser(management.url);
    async function send(
      path: string,
      { method = "POST", body, origin = publicUrl.origin }: Sent = {},
    ) {
      const response = await request(path, {
        method,
        headers: {
          ...(origin !== null && { origin }),
          ...(body !== undefined && { "content-type": "application/json" }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
    }
    const get = (path: string) => send(path, { method: "GET" });

    /** Returns the challenge for a ceremony. */
    async function challenge(purpose: string, invitation?: string): Promise<string> {
      const answer = await send("/auth/passkey/options", {
        body: { purpose, ...(invitation && { invitation }) },
      });
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
      return answer.body.options.challenge;
    }

    /** Registers a passkey, by an invitation or as the signed-in person. */
    async function register(invitation?: string, change: Partial<Ceremony> = {}) {
      return registerWith(await challenge("register", invitation), invitation, change);
    }

    /** Registers a passkey with an earlier challenge. */
    async function registerWith(
      given: string,
      invitation?: string,
      change: Partial<Ceremony> = {},
    ) {
      const asked = ceremony(given);
      const { passkey, credential } = createPasskey({ ...asked, ...change });
      const answer = await send("/auth/passkey/verify", {
        body: { purpose: "register", credential, ...(invitation && { invitation }) },
      });
      return { ...answer, passkey, credential };
    }

    /** Signs in, or confirms the session, with a passkey. */
    async function sign(
      purpose: "sign_in" | "confirm",
      passkey: SoftwarePasskey,
      change: Partial<Ceremony> = {},
    ) {
      const credential = signWithPasskey(passkey, {
        ...ceremony(await challenge(purpose)),
        ...change,
      });
      const answer = await send("/auth/passkey/verify", { body: { purpose, credential } });
      return { ...answer, credential };
    }

    return { send, get, cookies, challenge, register, registerWith, sign };
  }

  const operator = (path: string, body?: object, method = body ? "POST" : "GET") =>
    management.call(path, { method, key: operatorToken, ...(body && { body }) });

  /** Invites an address into an organization. Returns the code of the link. */
  async function invite(organizationId: string, email: string, role = "editor") {
    const path = `/api/v1/organizations/${organizationId}/invitations`;
    const answer = await operator(path, { email, role });
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
    return { code: new URL(answer.body.url).hash.replace("#invitation=", ""), ...answer.body };
  }

  /** Creates a link of the operator for a user. Returns its code. */
  async function link(organizationId: string, userId: string): Promise<string> {
    const path = `/api/v1/organizations/${organizationId}/sign-in-links`;
    const answer = await operator(path, { user_id: userId });
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
    return new URL(answer.body.url).hash.replace("#link=", "");
  }

  /** Creates an organization and a browser, whose person has registered a passkey there by an invitation. */
  async function member(role = "editor") {
    const { id: organizationId } = await given.organization();
    const { code, user } = await invite(organizationId, "ada@example.com", role);
    const joined = browser();
    const { passkey } = await joined.register(code);
    return { organizationId, userId: user.id as string, browser: joined, passkey };
  }

  return { ...management, ...given, publicUrl, lines, browser, operator, invite, link, member };
}

/** `origin` is the one of this installation unless it is null: then the browser sends none. */
type Sent = { method?: string; body?: unknown; origin?: string | null };
