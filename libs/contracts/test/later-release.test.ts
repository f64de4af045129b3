import {
  type AudienceEntry,
  type EntryAddress,
  entryKey,
  type FlagEntry,
  parseEntry,
} from "@halyard/contracts";
import { findUnknown } from "@halyard/evaluation";
import { describe, expect, it } from "@jest/globals";

const id = (number: number) => `0199a000-0000-7000-8000-00000000000${number}`;
const stamp = { version: 2, committed_at: "2027-01-01T00:00:00.000Z" };
const scope = { organization_id: id(1), project_id: id(2), key: "beta" };
const addressOf = {
  flag: { kind: "flag", organizationId: id(1), environmentId: id(3), flagId: id(4) },
  audience: { kind: "audience", organizationId: id(1), projectId: id(2), audienceId: id(5) },
} satisfies Record<string, EntryAddress>;

const state = { enabled: true, rollout_percentage: 100, targeting_rules: [] };
const known = {
  flag: { kind: "flag", ...scope, environment_id: id(3), flag_id: id(4), ...state, ...stamp },
  audience: { kind: "audience", ...scope, audience_id: id(5), match: [], ...stamp },
};

const near = { attribute: "city", operator: "near", value: "Berlin" };
const denying = (condition: object) => ({
  targeting_rules: [{ conditions: [condition], value: false }, { conditions: [] }],
});

describe("given an entry of a later release", () => {
  it.each<["flag" | "audience", string, object]>([
    ["flag", "an unknown operator", denying(near)],
    ["flag", "an unknown kind of condition", denying({ cohort: "x" })],
    ["flag", "an unknown `is`", { requires: [{ flag: "other", is: "once" }] }],
    ["flag", "an unknown type", { value_type: "date", variations: "later" }],
    ["flag", "another form of its rules", { targeting_rules: { first: [] } }],
    ["audience", "an unknown operator", { match: [[near]] }],
    ["audience", "an audience in an audience", { match: [[{ audience: "staff" }]] }],
    ["audience", "another form of its list", { list: { attribute: "id", format: "bloom" } }],
  ])("keeps a %s with %s as unknown, without what is not known", (kind, _, later) => {
    const parsed = parseEntry(entryKey(addressOf[kind]), { ...known[kind], ...later });
    const { kind: _kind, ...ids } = known[kind];
    expect(parsed).toMatchObject({
      ok: true,
      problem: expect.any(String),
      value: { address: addressOf[kind], value: { version: 2, key: "beta" } },
    });
    const value = (parsed?.ok && parsed.value.value) as FlagEntry | AudienceEntry;
    expect(Object.keys(value)).toEqual(expect.arrayContaining(Object.keys(ids)));
    expect(findUnknown({ needs: value.needs ?? [], targeting_rules: [] })).toBeDefined();
    expect(JSON.stringify(value)).not.toMatch(/near|cohort|once|date"|later|first|staff|bloom/);
  });

  it.each(["flag", "audience"] as const)("rejects a %s without its version or its ids", (kind) => {
    const address = entryKey(addressOf[kind]);
    for (const lacking of ["version", "committed_at", "key", "project_id"])
      expect(parseEntry(address, { ...known[kind], [lacking]: undefined })?.ok).toBe(false);
  });

  it.each(["flag", "audience"] as const)("reads a known %s completely", (kind) => {
    const parsed = parseEntry(entryKey(addressOf[kind]), known[kind]);
    expect(parsed).toEqual({ ok: true, value: { address: addressOf[kind], value: known[kind] } });
  });
});
