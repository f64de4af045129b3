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
  ])("blames the upstream for %s %s", (syscall, code) => {
    expect(isUnreachable(errorOf(syscall, code))).toBe(true);
  });

  it.each(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EADDRNOTAVAIL", "EAGAIN"])(
    "does not blame the upstream for %s",
    (code) => {
      expect(isUnreachable(errorOf("connect", code))).toBe(false);
      expect(isUnreachable(errorOf("getaddrinfo", code))).toBe(false);
    },
  );

  it("does not blame the upstream for a connection that broke later", () => {
    expect(isUnreachable(errorOf("read", "ECONNRESET"))).toBe(false);
  });
});
