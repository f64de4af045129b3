import { describe, expect, it } from "@jest/globals";
import { bodyText, maxTitle, type Proposal, titleOf } from "../src/proposals/proposal.ts";
import { exceptionOf, stateProposal, switchProposal } from "../src/proposals/state-proposal.ts";
import { hasTwoTimes, scheduleProposal } from "../src/schedules/schedule-proposal.ts";
import type { State } from "../src/state/flag-state.ts";

const off: State = { enabled: false, rollout_percentage: 100, targeting_rules: [] };
const on: State = { ...off, enabled: true };
const place = {
  flag: { id: "f", key: "checkout" },
  environment: { id: "p", name: "production" },
};

describe("the title of a change request", () => {
  it("names the subject and two differences", () => {
    const percentage = { label: "Percentage", before: "25 %", after: "50 %" };
    const rule = { label: "Rule 2", before: "staff: on" };
    expect(titleOf("checkout in production", [percentage, rule])).toBe(
      "checkout in production: 25 % → 50 % and rule 2 removed",
    );
    expect(titleOf("checkout", [percentage, rule, rule])).toBe(
      "checkout: 25 % → 50 %, rule 2 removed and 1 more",
    );
    expect(titleOf("checkout", [{ label: "Rule 1", parts: [percentage] }])).toBe(
      "checkout: rule 1 changed",
    );
    expect(titleOf("Delete checkout", [])).toBe("Delete checkout");
  });

  it("has at most the characters that the API accepts", () => {
    expect(titleOf("x".repeat(300), [])).toHaveLength(maxTitle);
  });
});

describe("the body of a change request", () => {
  const proposal: Proposal = { ...switchProposal(place, { enabled: true, version: 3 }) };

  it("has a reason and a time only if they are given", () => {
    expect(JSON.parse(bodyText(proposal, { title: " On ", reason: " " }))).toEqual({
      title: "On",
      changes: [
        {
          ...{ kind: "state", flag_id: "f", environment_id: "p", base_version: 3 },
          patch: { enabled: true },
        },
      ],
    });
    const timed = { ...proposal, applyAt: "2099-01-01T08:00:00.000Z" };
    expect(JSON.parse(bodyText(timed, { title: "On", reason: "Tested." }))).toMatchObject({
      reason: "Tested.",
      apply_at: "2099-01-01T08:00:00.000Z",
    });
  });

  it("keeps the texts of values", () => {
    const changesText = '[{"kind":"flag_variations","variations":[{"key":"a","value":1.0}]}]';
    const text = bodyText({ ...proposal, changesText }, { title: "Values", reason: "" });
    expect(text).toBe(`{"title":"Values","changes":${changesText}}`);
  });
});

describe("a proposed state", () => {
  it("is based on the version that the person saw", () => {
    const proposal = stateProposal(place, { version: 7 }, { before: off, after: on });
    expect(proposal.changes).toMatchObject([{ base_version: 7, patch: { enabled: true } }]);
    expect(proposal.title).toBe("checkout in production: turned on");
  });

  it("may be an exception only if it turns the flag off, and nothing else", () => {
    expect(exceptionOf(on, off)).toBe("off");
    expect(exceptionOf(off, on)).toBeUndefined();
    expect(exceptionOf(on, { ...off, rollout_percentage: 50 })).toBeUndefined();
  });
});

describe("a proposed schedule", () => {
  it("has one time", () => {
    const at = new Date("2099-01-01T08:00:00Z");
    expect(scheduleProposal(place, { enableAt: null, disableAt: at })).toMatchObject({
      applyAt: at.toISOString(),
      changes: [{ patch: { enabled: false } }],
    });
    expect(hasTwoTimes({ enableAt: at, disableAt: at })).toBe(true);
    expect(hasTwoTimes({ enableAt: at, disableAt: null })).toBe(false);
  });
});
