import { createKeyLimits } from "@halyard/api-keys";
import { describe, expect, it } from "@jest/globals";
import { createCosts } from "../../src/access/costs.ts";
import type { Principal } from "../../src/access/principal.ts";

const key = { id: "key", organizationId: "a", kind: "server" } as const;
const principal = { kind: "key", key } as Principal;
const request = { id: "request", ip: "192.0.2.1", headers: {} };
const flagId = "01993b5e-7a04-7f17-94eb-c81a3e5d2096";

function givenCosts() {
  const limits = createKeyLimits({ requestsPerSecond: 1_000, burst: 1_000 });
  return createCosts({ limits, now: () => new Date() });
}

describe("given a flag with large rules", () => {
  it.each([
    ["the flag", { id: flagId.toUpperCase() }],
    ["its state in an environment", { flagId, envId: "b" }],
  ])("gives small changes of %s a turn, however the flag's id is written", (_what, params) => {
    const costs = givenCosts();
    costs.chargeMessages({ params: { id: flagId }, request }, principal, 200_000);
    expect(costs.admit({ params, request }, principal, "change")).toBeInstanceOf(Function);
  });

  it("delays no small change of another flag", () => {
    const costs = givenCosts();
    costs.chargeMessages({ params: { id: flagId }, request }, principal, 200_000);
    const params = { id: flagId.replace("0", "1") };
    expect(costs.admit({ params, request }, principal, "change")).toBeUndefined();
  });
});
