import type { FlagEntry } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { deriveView, emptyView } from "../../src/environment/environment-view.ts";
import { differenceBetween } from "../../src/environment/view-difference.ts";
import { buildSnapshot, type Entry } from "../../src/snapshot/reduce.ts";
import { deletedFlag, flagEntry, id } from "../builders.ts";

describe("given the flags of an environment", () => {
  it("answers their values in the order of their keys", () => {
    const view = viewOf(flag(1, "beta", true), flag(2, "alpha", false), flag(3, "10", true));
    expect(view.body).toBe('{"flags":{"10":true,"alpha":false,"beta":true}}');
  });

  it.each([
    { enabled: true, outcome: { value: true, variation: "on", reason: "static" } },
    { enabled: false, outcome: { value: false, variation: "off", reason: "disabled" } },
  ])("answers $outcome.reason where enabled is $enabled", ({ enabled, outcome }) => {
    expect(viewOf(flag(1, "checkout", enabled)).outcomes.get("checkout")).toEqual(outcome);
  });

  it("leaves out what was deleted", () => {
    expect(viewOf(flag(1, "gone", true), deletedFlag(2, id("flag", 1))).body).toBe('{"flags":{}}');
  });

  it("lets the later of two flags have a key that both claim, whichever came first", () => {
    const earlier = flag(1, "checkout", true);
    const later = flag(2, "checkout", false);
    for (const entries of [
      [earlier, later],
      [later, earlier],
    ])
      expect(viewOf(...entries).body).toBe('{"flags":{"checkout":false}}');
  });

  it("writes keys that no flag should have so that they harm nobody", () => {
    const keys = ["__proto__", 'quo"te', "naïve", "line\nbreak", "⚓"];
    const view = viewOf(...keys.map((key, number) => flag(number, key, true)));
    expect(Object.keys(JSON.parse(view.body).flags).sort()).toEqual([...keys].sort());
    expect(view.body).toMatch(/^[\x20-\x7e]*$/);
  });
});

describe("given the tag of a view", () => {
  const view = viewOf(flag(1, "alpha", true), flag(2, "beta", false));

  it("is the same for the same values, however they came about", () => {
    const again = viewOf(flag(7, "beta", false, 9), flag(8, "alpha", true, 3));
    expect(again.etag).toBe(view.etag);
  });

  it("is another one for other values", () => {
    const tags = [
      view,
      viewOf(flag(1, "alpha", false), flag(2, "beta", false)),
      viewOf(flag(1, "alpha", true)),
      viewOf(flag(1, "alphab", true), flag(2, "eta", false)),
      emptyView,
    ].map(({ etag }) => etag);
    expect(new Set(tags).size).toBe(tags.length);
  });

  it("is a strong one", () => {
    expect(view.etag).toMatch(/^"[A-Za-z0-9_-]{22}"$/);
  });
});

describe("given two views", () => {
  const before = viewOf(flag(1, "same", true), flag(2, "flips", true), flag(3, "goes", true));
  const after = viewOf(flag(1, "same", true), flag(2, "flips", false), flag(4, "comes", false));

  it("tells what changed and what is no more", () => {
    expect(differenceBetween(before, after)).toEqual({
      changed: [
        ["comes", false],
        ["flips", false],
      ],
      removed: ["goes"],
    });
  });

  it("tells nothing of a view and itself", () => {
    expect(differenceBetween(after, after)).toEqual({ changed: [], removed: [] });
  });
});

function flag(number: number, key: string, enabled: boolean, version = 1): Entry {
  const fields: Partial<FlagEntry> = { flag_id: id("flag", number), key, enabled, version };
  return flagEntry(fields);
}

function viewOf(...entries: Entry[]) {
  return deriveView(buildSnapshot(id("epoch"), entries).environments.get(id("env")));
}
