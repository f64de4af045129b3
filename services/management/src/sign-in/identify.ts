import type { ProviderIdentity } from "./provider-claims.ts";
import type { AdmissionSettings } from "./settings.ts";

/**
 * Decision about a sign-in with an account of the provider: the person, and the users to link to the person. Issuer and
 * subject alone identify an account. Its e-mail address counts only if it is verified, and only for unlinked users.
 * Otherwise the next owner of an address could take over the users of the previous one.
 */
type SignInDecision =
  | { refused: SignInRefusal }
  | {
      /** Null: the account is new, and so is its person. */
      personId: string | null;
      /** Users that are linked to the person already. */
      own: readonly KnownUser[];
      /** Users to link to the person. */
      link: readonly KnownUser[];
      /** Organizations that get a new user for the person. */
      join: readonly Admission[];
    };

export type SignInRefusal =
  /** No user has this address, and no rule admits the account. */
  | "no_account"
  /** The account is new, and the provider has not verified its address. */
  | "address_not_verified"
  /** The users with this address are linked to another account. */
  | "other_identity";

/** A user with the address of the account, or linked to the person. Never a service user. */
export type KnownUser = {
  id: string;
  organizationId: string;
  email: string;
  personId: string | null;
  /** The user has the address of the account, ignoring the case of ASCII letters. */
  hasAddress: boolean;
};

/** An organization that admits the account, with the role of the new user there. Groups give their roles themselves. */
export type Admission = { organizationId: string; role: "viewer" | null };

export function decideSignIn(facts: {
  identity: ProviderIdentity;
  /** Person of this issuer and subject; null for a new account. */
  personId: string | null;
  users: readonly KnownUser[];
  /** Persons with another subject of this issuer and the same address. */
  otherPersonIds: readonly string[];
  /** Existing organizations of `autoJoin` and of groups, in the order of preference. */
  admissions: readonly Admission[];
  settings: AdmissionSettings;
}): SignInDecision {
  const { identity, personId, otherPersonIds, settings } = facts;
  const email = verifiedEmail(identity, settings);
  const withAddress = facts.users.filter(({ hasAddress }) => email !== undefined && hasAddress);
  const own = facts.users.filter((user) => personId !== null && user.personId === personId);
  if (own.length === 0) {
    if (email === undefined) return { refused: "address_not_verified" };
    if (withAddress.some((user) => otherPersonIds.includes(user.personId ?? "")))
      return { refused: "other_identity" };
  }
  // After the first link, joining another organization takes an invitation.
  const free = withAddress.filter((user) => user.personId === null);
  const admissions = email === undefined ? [] : facts.admissions;
  const link = free.filter((user) => own.length === 0 || admits(admissions, user));
  const taken = [...own, ...withAddress].map(({ organizationId }) => organizationId);
  const join = admissions.filter(({ organizationId }) => !taken.includes(organizationId));
  if (own.length + link.length + join.length > 0) return { personId, own, link, join };
  return { refused: withAddress.length > 0 ? "other_identity" : "no_account" };
}

const admits = (admissions: readonly Admission[], user: KnownUser) =>
  admissions.some(({ organizationId }) => organizationId === user.organizationId);

const google = "https://accounts.google.com";

/** Returns the address of an account; undefined if it is not verified. */
export function verifiedEmail(
  { issuer, email, emailVerified, hostedDomain }: ProviderIdentity,
  { trustedDomains }: AdmissionSettings,
): string | undefined {
  if (email === undefined || emailVerified) return email;
  const domain = domainOf(email);
  const isTrusted =
    trustedDomains.includes(domain) && (issuer !== google || hostedDomain === domain);
  return isTrusted ? email : undefined;
}

/**
 * Returns the domain of an address, with ASCII letters in lower case. Other letters stay, because Unicode maps some of
 * them to ASCII: the Kelvin sign would become a "k" of another domain.
 */
export function domainOf(email: string): string {
  return email
    .slice(email.lastIndexOf("@") + 1)
    .replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}
