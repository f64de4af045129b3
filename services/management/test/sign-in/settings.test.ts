import { readEnvironment } from "@halyard/configuration";
import { describe, expect, it } from "@jest/globals";
import { z } from "zod";
import { returnUrl } from "../../src/sign-in/return-path.ts";
import {
  requireSignInTogether,
  signInSettings,
  signInVariables,
} from "../../src/sign-in/settings.ts";

/** Tests the variables of signing in, and the check of `return_to`. */
const read = (variables: Record<string, string>) =>
  readEnvironment(requireSignInTogether(z.object(signInVariables)), variables);

const provider = {
  PUBLIC_URL: "https://flags.example.com",
  OIDC_ISSUER: "https://issuer.example.com/realms/a",
  OIDC_CLIENT_ID: "halyard",
};

describe("given variables of signing in", () => {
  it("switches everything off without a public URL", () => {
    expect(signInSettings(read({}))).toBeUndefined();
  });

  it("switches passkeys on without a provider, and off with one", () => {
    const { PUBLIC_URL } = provider;
    expect(signInSettings(read({ PUBLIC_URL }))).toMatchObject({ passkeys: true });
    expect(signInSettings(read(provider))).toMatchObject({ passkeys: false });
    expect(signInSettings(read({ ...provider, PASSKEYS: "on" }))).toMatchObject({ passkeys: true });
  });

  it.each([
    "https://a.example",
    "https://a.example:8443/",
    "http://localhost:8080",
    "http://[::1]:80",
  ])("accepts the public URL %s", (PUBLIC_URL) => {
    expect(read({ PUBLIC_URL })).toMatchObject({ PUBLIC_URL });
  });

  it.each([
    { PUBLIC_URL: "http://flags.example.com" },
    { PUBLIC_URL: "https://flags.example.com/path" },
    { PUBLIC_URL: "https://user@flags.example.com" },
    { ...provider, OIDC_ISSUER: "http://issuer.example.com" },
    { ...provider, OIDC_ISSUER: "http://127.0.0.1.example.com" },
    { ...provider, OIDC_ISSUER: "https://issuer.example.com?a" },
    { ...provider, OIDC_SCOPES: "email" },
    { ...provider, OIDC_GROUPS_ORGANIZATIONS: "all,018f0000-0000-7000-8000-000000000001" },
    { ...provider, OIDC_TRUSTED_EMAIL_DOMAINS: "@example.com" },
    { OIDC_ISSUER: provider.OIDC_ISSUER, OIDC_CLIENT_ID: "a" },
    { PUBLIC_URL: provider.PUBLIC_URL, OIDC_ISSUER: provider.OIDC_ISSUER },
    { OIDC_CLIENT_SECRET: "a" },
    { ...provider, OIDC_AUTO_JOIN: "018f0000-0000-7000-8000-000000000001" },
    { ...provider, OIDC_AUTO_JOIN_DOMAINS: "example.com" },
    { PASSKEYS: "on" },
    { PASSKEYS: "yes" },
  ])("rejects %j", (variables) => {
    expect(() => read(variables)).toThrow();
  });
});

describe("given a page to return to", () => {
  const publicUrl = new URL("https://flags.example.com");

  it.each([["/"], ["/flags?tab=rules#first"], ["/invitation#code"]])("returns to %s", (path) => {
    expect(returnUrl(path, publicUrl).href).toBe(`https://flags.example.com${path}`);
  });

  it.each([
    [undefined],
    [["/a", "/b"]],
    [""],
    ["flags"],
    ["//evil.example"],
    ["/\\evil.example"],
    ["\\\\evil.example"],
    ["/\t/evil.example"],
    ["https://evil.example"],
    ["javascript:alert(1)"],
    ["/auth/oidc/start"],
    ["/a/../auth/oidc/start"],
    [`/${"a".repeat(2_000)}`],
  ])("returns to the start page instead of %j", (path) => {
    expect(returnUrl(path, publicUrl).href).toBe("https://flags.example.com/");
  });

  it("stays on this host for a path that looks like another one", () => {
    expect(returnUrl("/.//evil.example", publicUrl).host).toBe("flags.example.com");
  });
});
