import { describe, expect, it } from "@jest/globals";
import type { Protection } from "../src/api/schema.d.ts";
import { isLower, needsApproval, protectedAmong, protectionText } from "../src/state/protection.ts";

const one: Protection = { approvals: 1, self_approval: false, without_approval: [] };

describe("a protection", () => {
  it("is described with its exceptions", () => {
    expect(protectionText(null)).toBe("not protected");
    expect(protectionText(one)).toBe("1 approval");
    expect(
      protectionText({ approvals: 2, self_approval: true, without_approval: ["rollback", "off"] }),
    ).toBe(
      "2 approvals, also by authors, none for turning one flag off and rolling back to an approved state",
    );
  });

  it.each<[string, Protection | null, Protection | null, boolean]>([
    ["a new one", null, one, false],
    ["more approvals", one, { ...one, approvals: 2 }, false],
    ["fewer approvals", { ...one, approvals: 2 }, one, true],
    ["another exception", one, { ...one, without_approval: ["off"] }, true],
    ["an exception less", { ...one, without_approval: ["off"] }, one, false],
    ["approvals by authors", one, { ...one, self_approval: true }, true],
    ["none", one, null, true],
  ])("is lowered or not by %s", (_change, before, after, isLowered) => {
    expect(isLower(before, after)).toBe(isLowered);
  });

  it("requires approvals except for its exceptions", () => {
    expect(needsApproval({ protected: null })).toBe(false);
    expect(needsApproval({ protected: one }, "off")).toBe(true);
    expect(needsApproval({ protected: { ...one, without_approval: ["off"] } }, "off")).toBe(false);
    expect(needsApproval({ protected: { ...one, without_approval: ["off"] } })).toBe(true);
    expect(protectedAmong([{ protected: null }, { protected: one }])).toEqual({ protected: one });
  });
});
