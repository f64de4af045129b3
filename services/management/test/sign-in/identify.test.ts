import { describe, expect, it } from "@jest/globals";
import { decideSignIn, type KnownUser, verifiedEmail } from "../../src/sign-in/identify.ts";
import type { ProviderIdentity } from "../../src/sign-in/provider-claims.ts";
import type { AdmissionSettings } from "../../src/sign-in/settings.ts";

/** Tests the person and the linked users of a sign-in with an account of the provider. */
const identity: ProviderIdentity = {
  issuer: "https://issuer.example.com",
  subject: "1",
  email: "ada@example.com",
  emailVerified: true,
  hostedDomain: undefined,
  name: "Ada",
  groups: [],
};
const settings: AdmissionSettings = {
  trustedDomains: [],
  autoJoin: undefined,
  groupsOrganizations: [],
};

/** A user of an organization whose id is that of the organization too. */
const user = (id: string, { personId = null as string | null, hasAddress = true } = {}) =>
  ({ id, organizationId: id, email: "ada@example.com", personId, hasAddress }) satisfies KnownUser;

type Facts = Parameters<typeof decideSignIn>[0];
const decide = (facts: Partial<Facts>) =>
  decideSignIn({
    ...{ identity, settings, personId: null, users: [], otherPersonIds: [], admissions: [] },
    ...facts,
  });
const unverified = { ...identity, emailVerified: false };

describe("given a new account", () => {
  it("is linked to all unlinked users with its verified address", () => {
    const [first, second] = [user("acme"), user("umbrella")];
    expect(decide({ users: [first, second] })).toEqual({
      ...{ personId: null, own: [], link: [first, second], join: [] },
    });
  });

  it.each([
    ["no user has its address", {}, "no_account"],
    [
      "its address is not verified",
      { identity: unverified, users: [user("acme")] },
      "address_not_verified",
    ],
    ["it has no address", { identity: { ...identity, email: undefined } }, "address_not_verified"],
    [
      "the user is linked to another person",
      { users: [user("acme", { personId: "p" })] },
      "other_identity",
    ],
    [
      "another account of the issuer has its address, even if one user is free",
      { users: [user("acme", { personId: "p" }), user("umbrella")], otherPersonIds: ["p"] },
      "other_identity",
    ],
  ] satisfies [string, Partial<Facts>, string][])("is rejected if %s", (_, facts, refused) => {
    expect(decide(facts)).toEqual({ refused });
  });

  it("is linked to a free user, even if another person has renamed their user to the same address", () => {
    const free = user("acme");
    const renamed = user("umbrella", { personId: "p" });
    expect(decide({ users: [free, renamed] })).toMatchObject({ link: [free], join: [] });
  });

  it("joins an organization that admits it", () => {
    const admission = { organizationId: "acme", role: "viewer" } as const;
    expect(decide({ admissions: [admission] })).toMatchObject({ link: [], join: [admission] });
  });

  it("does not join an organization that has its address for another person", () => {
    expect(
      decide({
        users: [user("acme", { personId: "p" })],
        admissions: [{ organizationId: "acme", role: "viewer" }],
      }),
    ).toEqual({ refused: "other_identity" });
  });

  it("does not join an organization with an address that is not verified", () => {
    const admissions = [{ organizationId: "acme", role: null }] as const;
    expect(decide({ identity: unverified, admissions })).toEqual({
      refused: "address_not_verified",
    });
  });
});

describe("given the account of a person", () => {
  const own = user("acme", { personId: "p", hasAddress: false });

  it("signs in without a verified address, because the subject identifies it", () => {
    expect(decide({ personId: "p", identity: unverified, users: [own] })).toEqual({
      ...{ personId: "p", own: [own], link: [], join: [] },
    });
  });

  it("is linked to no further user by address: that needs an invitation", () => {
    expect(decide({ personId: "p", users: [own, user("umbrella")] })).toMatchObject({ link: [] });
  });

  it("is linked to a free user of an organization that admits it", () => {
    const free = user("umbrella");
    const admissions = [{ organizationId: "umbrella", role: null }] as const;
    expect(decide({ personId: "p", users: [own, free], admissions })).toMatchObject({
      link: [free],
      join: [],
    });
  });

  it("is linked by address again after the operator has unlinked its only user", () => {
    const free = user("acme");
    expect(decide({ personId: "p", users: [free] })).toMatchObject({ personId: "p", link: [free] });
  });

  it("is rejected if the person has no user any longer", () => {
    expect(decide({ personId: "p" })).toEqual({ refused: "no_account" });
  });
});

describe("given an address of a trusted domain", () => {
  const trusting = { ...settings, trustedDomains: ["example.com"] };
  const google = { ...unverified, issuer: "https://accounts.google.com" };

  it.each([
    ["is verified", unverified, "ada@example.com"],
    ["is verified in capitals", { ...unverified, email: "Ada@EXAMPLE.com" }, "Ada@EXAMPLE.com"],
    ["is not verified below the domain", { ...unverified, email: "ada@a.example.com" }, undefined],
    [
      "is not verified by its beginning",
      { ...unverified, email: "a@example.com.a.org" },
      undefined,
    ],
    ["is not verified by Google without hd", google, undefined],
    ["is not verified by Google with another hd", { ...google, hostedDomain: "a.org" }, undefined],
    [
      "is verified by Google with its hd",
      { ...google, hostedDomain: "example.com" },
      "ada@example.com",
    ],
  ])("%s", (_, of, email) => {
    expect(verifiedEmail(of, trusting)).toBe(email);
  });

  it("is not verified if only Unicode maps its letters to the domain", () => {
    const kelvin = { ...unverified, email: "ada@\u212Aeys.example" };
    expect(
      verifiedEmail(kelvin, { ...settings, trustedDomains: ["keys.example"] }),
    ).toBeUndefined();
  });
});
