import { CreateUser, compileCheck } from "@halyard/contracts";

/** Claims about an account, from a verified id token and from the UserInfo endpoint. */
export type ProviderIdentity = {
  issuer: string;
  subject: string;
  /** Undefined without a well-formed address. */
  email: string | undefined;
  /** The provider itself has verified the address: `email_verified` is true. */
  emailVerified: boolean;
  /** Google's claim of the company that manages the account. */
  hostedDomain: string | undefined;
  name: string | undefined;
  groups: readonly string[];
};

/** `groups_by_reference`: the token has a link to the groups instead of the groups, because there are too many. */
export type ClaimsRefusal = { refused: "groups_by_reference" | "invalid_response" };

/** Longer subjects are invalid (OpenID Connect Core 1.0, section 2). */
const maxSubjectLength = 255;
/** Roles are mapped from shorter groups only. */
const maxGroupLength = 200;
/** Bounds the entry of a session. Providers send a reference from 200 groups on. */
const maxGroups = 1_000;

const checkEmail = compileCheck(CreateUser.shape.email);
const checkName = compileCheck(CreateUser.shape.name);

export function readProviderClaims(
  claims: Readonly<Record<string, unknown>>,
  { issuer, groupsClaim }: { issuer: string; groupsClaim: string },
): ProviderIdentity | ClaimsRefusal {
  const { sub: subject, email, name, hd } = claims;
  if (!isText(subject, maxSubjectLength)) return { refused: "invalid_response" };
  const groups = readGroups(claims, groupsClaim);
  if (groups === undefined) return { refused: "groups_by_reference" };
  const [checkedEmail, checkedName] = [checkEmail(email), checkName(name)];
  return {
    issuer,
    subject,
    email: checkedEmail.ok ? checkedEmail.value : undefined,
    emailVerified: claims.email_verified === true,
    hostedDomain: typeof hd === "string" ? hd : undefined,
    name: checkedName.ok ? checkedName.value : undefined,
    groups,
  };
}

/** Returns undefined if the token refers to the groups, or has more than a session holds. */
function readGroups(
  claims: Readonly<Record<string, unknown>>,
  claim: string,
): string[] | undefined {
  const references = claims._claim_names;
  if (typeof references === "object" && references !== null && Object.hasOwn(references, claim))
    return undefined;
  const value = Object.hasOwn(claims, claim) ? claims[claim] : [];
  const groups = (Array.isArray(value) ? value : [value]).filter((group) =>
    isText(group, maxGroupLength),
  );
  return groups.length > maxGroups ? undefined : [...new Set(groups)];
}

/** Returns whether a claim is text that PostgreSQL can store. */
function isText(value: unknown, maxLength: number): value is string {
  return (
    typeof value === "string" &&
    value !== "" &&
    value.length <= maxLength &&
    value.isWellFormed() &&
    !value.includes("\0")
  );
}
