import { describe, expect, it } from "@jest/globals";
import { isUnreachable } from "../src/is-unreachable.ts";

function errorOf(syscall: string, code: string): Error {
  return Object.assign(new Error(code), { syscall, code });
}

describe("given a connection that failed", () => {
  it.each([
    ["connect", "ECONNREFUSED"],
    ["connect", "EHOSTUNREACH"],
    ["connect", "ETIMEDOUT"],
    ["getaddrinfo", "ENOTFOUND"],
    ["getaddrinfo", "EAI_AGAIN"],
  ])("treats the upstream as unreachable on %s %s", (syscall, code) => {
    expect(isUnreachable(errorOf(syscall, code))).toBe(true);
  });

  it.each(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EADDRNOTAVAIL", "EAGAIN"])(
    "does not treat the upstream as unreachable on %s",
    (code) => {
      expect(isUnreachable(errorOf("connect", code))).toBe(false);
      expect(isUnreachable(errorOf("getaddrinfo", code))).toBe(false);
    },
  );

  it("does not treat the upstream as unreachable if an established connection broke", () => {
    expect(isUnreachable(errorOf("read", "ECONNRESET"))).toBe(false);
  });
});
