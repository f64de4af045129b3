import { randomBytes } from "node:crypto";
import { makeApiKey, parseApiKey } from "@halyard/api-keys";
import { describe, expect, it } from "@jest/globals";

describe("an API key", () => {
  it("has an id of 16 base32 characters and a secret of 43 base64url characters", () => {
    expect(makeApiKey("client", randomBytes).key).toMatch(/^hc_[a-z2-7]{16}_[A-Za-z0-9_-]{43}$/);
    expect(makeApiKey("reader", randomBytes).key).toMatch(/^hr_[a-z2-7]{16}_[A-Za-z0-9_-]{43}$/);
    expect(makeApiKey("server", randomBytes).key).toMatch(/^hs_[a-z2-7]{16}_[A-Za-z0-9_-]{43}$/);
  });

  it("is parsed into its parts", () => {
    for (const kind of ["client", "reader", "server"] as const) {
      const { id, key } = makeApiKey(kind, randomBytes);
      expect(parseApiKey(key)).toMatchObject({ kind, id });
    }
  });

  it("may have underscores in its secret", () => {
    const made = makeApiKey("client", (size) => Buffer.alloc(size, 0xff));
    expect(made.key).toContain("____");
    expect(parseApiKey(made.key)?.id).toBe(made.id);
  });

  it("uses every bit of its random bytes for the id", () => {
    // RFC 4648, section 10, extended to ten bytes: "foobarfoob" is MZXW6YTBOJTG633C.
    const made = makeApiKey("client", (size) => Buffer.from("foobar".repeat(6)).subarray(0, size));
    expect(made.id).toBe("mzxw6ytbojtg633c");
  });

  it.each([
    "",
    "hc_",
    "hx_aaaaaaaaaaaaaaaa_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "hc_AAAAAAAAAAAAAAAA_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "hc_aaaaaaaaaaaaaaaa_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "hc_aaaaaaaaaaaaaaaa_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
  ])("is not %j", (text) => {
    expect(parseApiKey(text)).toBeUndefined();
  });
});
