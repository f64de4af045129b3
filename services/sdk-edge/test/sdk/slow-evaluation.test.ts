import type { TargetingRule } from "@halyard/contracts";
import { call } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry, id } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";

/**
 * Rules as many as there may be, and a context as large as it may be: together they take seconds. They
 * belong to one customer, the edge to all.
 */
const slow = apiKey({ key_kind: "server" });
const other = apiKey({ environment_id: id("env", 2) });
const longText = "a".repeat(60_000);
let edge: EdgeServer;

beforeAll(async () => {
  edge = await startEdgeServer([
    slow.entry,
    other.entry,
    flagEntry({ key: "slow", enabled: true, targeting_rules: [...slowRules(), forVip()] }),
    flagEntry({
      flag_id: id("flag", 2),
      environment_id: id("env", 2),
      key: "other",
      enabled: true,
    }),
  ]);
});
afterAll(() => edge.stop());

const vip = { text: longText, plan: "vip" };
const nobodySpecial = { text: longText, plan: "free" };
const ask = (path: string, body: unknown) =>
  call(`${edge.url}${path}`, { key: slow.text, method: "POST", body });

describe.each([
  {
    endpoint: "all flags",
    path: "/api/v1/sdk/flags",
    body: (user: object) => user,
    value: (answered: { flags: { slow: boolean } }) => answered.flags.slow,
  },
  {
    endpoint: "one flag",
    path: "/api/v1/sdk/evaluate?key=slow",
    body: (user: object) => ({ user: { attributes: user } }),
    value: (answered: { value: boolean }) => answered.value,
  },
  {
    endpoint: "one flag with the way to its value",
    path: "/api/v1/sdk/evaluate?key=slow&explain=true",
    body: (user: object) => ({ user: { attributes: user } }),
    value: (answered: { value: boolean }) => answered.value,
  },
  {
    endpoint: "all flags by OFREP",
    path: "/ofrep/v1/evaluate/flags",
    body: (user: object) => ({ context: user }),
    value: (answered: { flags: [{ value: boolean }] }) => answered.flags[0].value,
  },
  {
    endpoint: "one flag by OFREP",
    path: "/ofrep/v1/evaluate/flags/slow",
    body: (user: object) => ({ context: user }),
    value: (answered: { value: boolean }) => answered.value,
  },
])("given an evaluation of $endpoint that takes long", ({ path, body, value }) => {
  it("answers others meanwhile, and then what the rules say", async () => {
    let isAnswered = false;
    const answering = ask(path, body(vip)).finally(() => {
      isAnswered = true;
    });
    let answeredMeanwhile = 0;
    while (!isAnswered) {
      const { status } = await call(`${edge.url}/api/v1/sdk/flags`, { key: other.text });
      expect(status).toBe(200);
      answeredMeanwhile += 1;
    }
    const answered = await answering;
    expect(answered.status).toBe(200);
    expect(value(answered.body)).toBe(true);
    // Answered in one go, it would let nobody through but who came before it.
    expect(answeredMeanwhile).toBeGreaterThan(3);
  });

  it("tells users apart as ever", async () => {
    expect(value((await ask(path, body(nobodySpecial))).body)).toBe(false);
  });
});

/** In none of them does the last condition hold, so all others are asked. */
function slowRules(): TargetingRule[] {
  return Array.from({ length: 40 }, (_, rule) => ({
    conditions: [
      ...Array.from({ length: 9 }, (_, at) => ({
        attribute: "text",
        operator: "not_contains" as const,
        value: `ab${rule}-${at}`,
      })),
      { attribute: "plan", operator: "equals" as const, value: "nobody's" },
    ],
  }));
}

function forVip(): TargetingRule {
  return { conditions: [{ attribute: "plan", operator: "equals", value: "vip" }] };
}
