import { expect, it } from "@jest/globals";
import { type State, stateOf } from "../src/index.ts";

it("returns a state with the members of the schema in its order, at any depth", () => {
  const condition = { value: ["DE"], operator: "in" as const, attribute: "country" };
  const stored = {
    version: 7,
    targeting_rules: [{ value: false, conditions: [condition], name: "Germany", unknown: 1 }],
    rollout_percentage: 10,
    enabled: true,
  };
  expect(JSON.stringify(stateOf(stored))).toBe(
    '{"enabled":true,"rollout_percentage":10,"targeting_rules":[{"name":"Germany","conditions":[{"attribute":"country","operator":"in","value":["DE"]}],"value":false}]}',
  );
});

it("keeps values that do not match the schema, and adds no members", () => {
  const odd = { targeting_rules: [null, "rule", { conditions: {} }] } as unknown as Partial<State>;
  expect(stateOf(odd)).toEqual(odd);
});
