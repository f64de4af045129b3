import { describe, expect, it } from "@jest/globals";
import {
  entriesProposal,
  listRemovalProposal,
  matchProposal,
  protectedUse,
} from "../src/audiences/audience-proposal.ts";
import { variationDifferences } from "../src/variations/variation-differences.ts";

const environment = (id: string, approvals?: number) => ({
  ...{ id, project_id: "w", name: id, caution: false, created_at: "" },
  protected:
    approvals === undefined ? null : { approvals, self_approval: false, without_approval: [] },
});
const environments = [environment("staging"), environment("production", 1)];
const use = (environmentId: string) => ({
  ...{ flag_id: "f", flag_key: "search", environment_id: environmentId },
});
const country = (value: string) => [{ attribute: "country", operator: "equals" as const, value }];

describe("a change of an audience", () => {
  it("is proposed only if a flag in a protected environment uses the audience", () => {
    expect(protectedUse({ used_by: [use("staging")] }, environments)).toBeUndefined();
    expect(protectedUse({ used_by: [use("staging"), use("production")] }, environments)).toBe(
      environments[1],
    );
  });

  it("proposes other conditions on the version that the person saw", () => {
    const beta = { key: "beta", version: 4 };
    expect(matchProposal(beta, [country("DE")], [country("AT")])).toMatchObject({
      title: "Change who is in the audience beta",
      changes: [
        { kind: "audience", audience: "beta", base_version: 4, patch: { match: [country("AT")] } },
      ],
      differences: [
        { before: "Alternative 1: country is DE", after: "Alternative 1: country is AT" },
      ],
    });
  });

  it("names no entries in the title, because others can read it", () => {
    expect(entriesProposal("beta", { add: ["user-42"] })).toMatchObject({
      title: "Add 1 entry to the list of beta",
      changes: [{ add: ["user-42"], remove: [] }],
    });
    expect(entriesProposal("beta", { remove: ["user-42"] }).title).toBe(
      "Remove 1 entry from the list of beta",
    );
  });

  it("proposes to remove the list", () => {
    const list = { attribute: "id", count: 2 };
    const audience = { key: "beta", version: 1, list };
    const removal = listRemovalProposal(audience as Parameters<typeof listRemovalProposal>[0]);
    expect(removal.changes).toMatchObject([{ patch: { list: null } }]);
    expect(removal.differences).toEqual([{ label: "List", before: "2 entries, compared with id" }]);
  });
});

describe("the differences of variations", () => {
  it("are one for each key, with the texts of values", () => {
    const before = [
      { key: "a", json: "1.0" },
      { key: "b", json: "2", name: "Two" },
      { key: "c", json: "3" },
    ];
    const after = [
      { key: "a", json: "1.50" },
      { key: "b", json: "2" },
      { key: "d", json: "4" },
    ];
    expect(variationDifferences(before, after)).toEqual([
      { label: "a", before: "1.0", after: "1.50" },
      { label: "b", before: "2 (Two)", after: "2" },
      { label: "d", after: "4" },
      { label: "c", before: "3" },
    ]);
  });
});
