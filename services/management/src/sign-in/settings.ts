import { commaSeparated, isSafeUrl, publicUrlVariable, variable } from "@halyard/configuration";
import { z } from "zod";

/** An issuer has no query and no fragment (OpenID Connect Discovery 1.0, section 2). */
function isIssuer(text: string): boolean {
  const url = URL.parse(text);
  return (
    url !== null &&
    isSafeUrl(url) &&
    !/[?#\s]/.test(text) &&
    `${url.username}${url.password}` === ""
  );
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const domain = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/;

const domains = commaSeparated
  .transform((items) => items.map((item) => item.toLowerCase()))
  .refine((items) => items.every((item) => domain.test(item)));

const onOrOff = z.enum(["on", "off"]);
const expectsOnOrOff = "on or off";
const expectsDomains = "domains such as example.com, separated by commas";

/** Environment variables of signing in, to be spread into the schema of management. */
export const signInVariables = {
  PUBLIC_URL: publicUrlVariable,
  OIDC_ISSUER: variable(z.string().refine(isIssuer).optional(), {
    description: "Issuer of the OpenID Connect provider that signs people in.",
    expects: "an https URL without a query, or an http URL at a loopback address",
  }),
  OIDC_CLIENT_ID: variable(z.string().optional(), {
    description: "Client id of this installation at the provider.",
    expects: "a string",
  }),
  OIDC_CLIENT_SECRET: variable(z.string().optional(), {
    description: "Client secret of this installation at the provider.",
    expects: "a string",
    documentedDefault: "not set: a public client",
    secret: true,
  }),
  OIDC_SCOPES: variable(
    z
      .string()
      .refine((text) => text.split(" ").includes("openid"))
      .default("openid email profile"),
    {
      description: "Scopes of the authorization request.",
      expects: "scopes separated by spaces, including openid",
    },
  ),
  OIDC_GROUPS_CLAIM: variable(z.string().default("groups"), {
    description: "Claim with the groups of a person.",
    expects: "the name of a claim",
  }),
  OIDC_GROUPS_ORGANIZATIONS: variable(
    commaSeparated
      .transform((items) => items.map((item) => item.toLowerCase()))
      .refine((items) => items.every((item) => uuid.test(item)) || items.join() === "all")
      .default([]),
    {
      description:
        "Organizations that give roles to groups of the provider. A group with a role admits its members.",
      expects: "ids of organizations, separated by commas, or all",
    },
  ),
  OIDC_TRUSTED_EMAIL_DOMAINS: variable(domains.default([]), {
    description:
      "Domains whose e-mail addresses count as verified without `email_verified`. Only for an issuer of a single company. Google must also report the domain as `hd`.",
    expects: expectsDomains,
  }),
  OIDC_AUTO_JOIN: variable(z.string().regex(uuid).toLowerCase().optional(), {
    description:
      "Organization that people with a verified address of `OIDC_AUTO_JOIN_DOMAINS` join as viewers.",
    expects: "the id of an organization",
  }),
  OIDC_AUTO_JOIN_DOMAINS: variable(domains.default([]), {
    description: "Domains of the e-mail addresses for `OIDC_AUTO_JOIN`.",
    expects: expectsDomains,
  }),
  PASSKEYS: variable(onOrOff.optional(), {
    description:
      "Sign-in with passkeys. Off by default with a provider, so that an account that is disabled there cannot sign in.",
    expects: expectsOnOrOff,
    documentedDefault: "on without `OIDC_ISSUER`, off with it",
  }),
  SIGN_IN_BY_OPERATOR: variable(onOrOff.default("on"), {
    description: "Sign-in by one-time links that the operator creates.",
    expects: expectsOnOrOff,
  }),
  SIGN_IN_BY_KEY: variable(onOrOff.default("on"), {
    description: "Sign-in to the dashboard with a server key.",
    expects: expectsOnOrOff,
  }),
};

type Variables = z.output<z.ZodObject<typeof signInVariables>>;
type Name = keyof Variables;

/** Variables that need another one. */
const dependencies: readonly (readonly [Name, Name])[] = [
  ["OIDC_ISSUER", "PUBLIC_URL"],
  ["OIDC_ISSUER", "OIDC_CLIENT_ID"],
  ["OIDC_CLIENT_ID", "OIDC_ISSUER"],
  ["OIDC_CLIENT_SECRET", "OIDC_ISSUER"],
  ["OIDC_GROUPS_ORGANIZATIONS", "OIDC_ISSUER"],
  ["OIDC_TRUSTED_EMAIL_DOMAINS", "OIDC_ISSUER"],
  ["OIDC_AUTO_JOIN", "OIDC_ISSUER"],
  ["OIDC_AUTO_JOIN", "OIDC_AUTO_JOIN_DOMAINS"],
  ["OIDC_AUTO_JOIN_DOMAINS", "OIDC_AUTO_JOIN"],
];

/** Rejects a variable without another one that it needs. */
export function requireSignInTogether<S extends z.ZodObject>(schema: S): S {
  const required = dependencies.reduce(
    (checked, [name, needed]) =>
      checked.refine(
        (config) => !isSet((config as Variables)[name]) || isSet((config as Variables)[needed]),
        `${needed} is not set: ${name} needs it.`,
      ),
    schema,
  );
  return required.refine((config) => {
    const { PASSKEYS, PUBLIC_URL } = config as Variables;
    return PASSKEYS !== "on" || PUBLIC_URL !== undefined;
  }, "PUBLIC_URL is not set: PASSKEYS=on needs it.");
}

const isSet = (value: Variables[Name]) => value !== undefined && value.length > 0;

/** The ways of signing in that are switched on. */
export type SignInSettings = {
  /** Origin of the installation, as a URL with the path `/`. */
  publicUrl: URL;
  oidc: OidcSettings | undefined;
  passkeys: boolean;
  byOperator: boolean;
};

export type OidcSettings = {
  issuer: string;
  clientId: string;
  clientSecret: string | undefined;
  scopes: string;
  groupsClaim: string;
  admission: AdmissionSettings;
};

/** Rules for people without an account. Domains are in lower case. */
export type AdmissionSettings = {
  trustedDomains: readonly string[];
  autoJoin: { organizationId: string; domains: readonly string[] } | undefined;
  /** Organizations that map groups to roles. */
  groupsOrganizations: readonly string[] | "all";
};

/** Returns undefined without `PUBLIC_URL`, which every way of signing in needs. */
export function signInSettings(config: Variables): SignInSettings | undefined {
  const { PUBLIC_URL: publicUrl, PASSKEYS: passkeys, OIDC_ISSUER: issuer } = config;
  if (publicUrl === undefined) return undefined;
  return {
    publicUrl: new URL(publicUrl),
    oidc: oidcSettings(config),
    passkeys: passkeys === undefined ? issuer === undefined : passkeys === "on",
    byOperator: config.SIGN_IN_BY_OPERATOR === "on",
  };
}

function oidcSettings(config: Variables): OidcSettings | undefined {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId } = config;
  if (issuer === undefined || clientId === undefined) return undefined;
  const { OIDC_AUTO_JOIN: joined, OIDC_GROUPS_ORGANIZATIONS: organizations } = config;
  return {
    issuer,
    clientId,
    clientSecret: config.OIDC_CLIENT_SECRET,
    scopes: config.OIDC_SCOPES,
    groupsClaim: config.OIDC_GROUPS_CLAIM,
    admission: {
      trustedDomains: config.OIDC_TRUSTED_EMAIL_DOMAINS,
      autoJoin:
        joined === undefined
          ? undefined
          : { organizationId: joined, domains: config.OIDC_AUTO_JOIN_DOMAINS },
      groupsOrganizations: organizations.includes("all") ? "all" : organizations,
    },
  };
}
