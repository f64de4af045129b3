import { describe, expect, it } from "@jest/globals";
import { readBrowserSecret, setBrowserSecret } from "../../src/sign-in/browser-cookie.ts";

/** Tests the cookie that binds a sign-in to the browser that began it. */
const secret = "a".repeat(43);
const secure = new URL("https://flags.example.com");
const local = new URL("http://localhost:8080");

describe("given the cookie of a browser", () => {
  it("belongs to this host alone over HTTPS", () => {
    expect(setBrowserSecret(secure, secret, 600)).toBe(
      `__Host-halyard-oidc=${secret}; Max-Age=600; Path=/; HttpOnly; SameSite=Lax; Secure`,
    );
  });

  it("has the port in its name over HTTP, because all ports of a host share their cookies", () => {
    expect(setBrowserSecret(local, secret, 600)).toBe(
      `halyard-oidc-8080=${secret}; Max-Age=600; Path=/; HttpOnly; SameSite=Lax`,
    );
  });

  it("is found among others", () => {
    expect(readBrowserSecret(`a=b; halyard-oidc-8080=${secret}; c=d`, local)).toBe(secret);
  });

  it.each([
    ["no cookie", undefined],
    ["the cookie of another port", `halyard-oidc-8081=${secret}`],
    ["the cookie of plain HTTP over HTTPS", `__Host-halyard-oidc=${secret}`],
    ["a short secret", "halyard-oidc-8080=a"],
    ["two cookies of the name", `halyard-oidc-8080=${secret}; halyard-oidc-8080=${secret}`],
  ])("is not found in %s", (_, header) => {
    expect(readBrowserSecret(header, local)).toBeUndefined();
  });
});
