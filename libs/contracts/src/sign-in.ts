import { z } from "zod";
import { Name } from "./name.ts";

/**
 * Routes below `/auth/`, which only pages of the dashboard call. They are not part of the public API. Each `POST` needs
 * `Origin` or `Sec-Fetch-Site` of the installation.
 */

/** Body of `POST /auth/link/verify` and `POST /auth/invitation/read`. */
export const OneTimeCode = z.strictObject({
  code: z.string().regex(/^[A-Za-z0-9_-]{43}$/),
});

/** The ways of signing in that are switched on. */
export type SignInMethods = {
  oidc: boolean;
  passkey: boolean;
  operator_link: boolean;
  key: boolean;
};

/** Response of `GET /auth/methods`. Pages ask it first, because browsers report a 401 of other routes as an error. */
export type WaysToSignIn = SignInMethods & { signed_in: boolean };

/** Response of `POST /auth/invitation/read`. */
export type ReadInvitation = {
  organization: { id: string; name: string };
  email: string;
  methods: SignInMethods;
};

const PasskeyPurpose = z.enum(["sign_in", "register", "confirm"]);
export type PasskeyPurpose = z.infer<typeof PasskeyPurpose>;

/**
 * Body of `POST /auth/passkey/options`. The response is `{ options }`, in the JSON of WebAuthn. `register` needs an
 * invitation or a session, and `confirm` a session.
 */
export const PasskeyOptionsRequest = z.strictObject({
  purpose: PasskeyPurpose,
  invitation: OneTimeCode.shape.code.optional(),
});

const Base64Url = z.string().regex(/^[A-Za-z0-9_-]+$/);
const Credential = {
  id: Base64Url.max(1_400),
  rawId: Base64Url.max(1_400),
  type: z.literal("public-key"),
  authenticatorAttachment: z.string().max(32).nullable().optional(),
  clientExtensionResults: z.looseObject({}),
};

const AttestedCredential = z.strictObject({
  ...Credential,
  response: z.looseObject({
    clientDataJSON: Base64Url,
    attestationObject: Base64Url,
    transports: z.array(z.string().max(32)).max(10).optional(),
  }),
});
export type AttestedCredential = z.infer<typeof AttestedCredential>;

const AssertedCredential = z.strictObject({
  ...Credential,
  response: z.looseObject({
    clientDataJSON: Base64Url,
    authenticatorData: Base64Url,
    signature: Base64Url,
    userHandle: Base64Url.nullable().optional(),
  }),
});
export type AssertedCredential = z.infer<typeof AssertedCredential>;

/**
 * Body of `POST /auth/passkey/verify`, whose response is 204. `credential` is the result of the browser, and `name` is
 * what the person calls a new passkey. A sign-in and a registration by invitation set the cookie of a session.
 */
export const PasskeyVerifyRequest = z.union([
  z.strictObject({
    purpose: z.literal("register"),
    credential: AttestedCredential,
    invitation: OneTimeCode.shape.code.optional(),
    name: Name.optional(),
  }),
  z.strictObject({ purpose: z.enum(["sign_in", "confirm"]), credential: AssertedCredential }),
]);
export type PasskeyVerifyRequest = z.infer<typeof PasskeyVerifyRequest>;
