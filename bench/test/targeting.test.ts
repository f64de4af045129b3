import { describe, expect, it } from "@jest/globals";
import { assertAgreement, libraryNames } from "../src/evaluation/agreement.ts";
import { numbered, numberedRequest, numberMark, requestBytes } from "../src/http/requests.ts";
import { countries, plans, targetedFlags, userOf } from "../src/targeting/targeted-flags.ts";

describe("given a request with a placeholder for a number", () => {
  const body = JSON.stringify({ user_id: `user-${numberMark}` });
  const plan = { method: "POST", path: "/flags", headers: { Accept: "*/*" }, body };

  it("its bytes contain consecutive numbers", () => {
    const request = numberedRequest(requestBytes(plan, "localhost"));
    expect(request(7).toString()).toContain('{"user_id":"user-00000007"}');
    expect(request(12_345_678).toString()).toContain('{"user_id":"user-12345678"}');
    expect(request(90).toString()).toContain('{"user_id":"user-00000090"}');
  });

  it("a plan with a number is the same request", () => {
    const bytes = requestBytes(numbered(plan, 42), "localhost").toString();
    expect(bytes).toBe(numberedRequest(requestBytes(plan, "localhost"))(42).toString());
  });
});

describe("given the flags and users of the benchmarks", () => {
  it("half of the users match each rule", () => {
    const users = Array.from({ length: countries.length * plans.length }, (_, at) => userOf(at));
    for (const flag of targetedFlags(100, ["rules"])) {
      if (flag.kind !== "rules") throw new Error("no rules");
      const met = users.filter(
        ({ country, plan }) => flag.countries.includes(country) && flag.plan === plan,
      );
      expect(met).toHaveLength(users.length / 2);
    }
  });

  it("each kind has the same number of flags", () => {
    const kinds = targetedFlags(99).map(({ kind }) => kind);
    for (const kind of ["constant", "rules", "rollout"])
      expect(kinds.filter((each) => each === kind)).toHaveLength(33);
  });
});

describe("given the values of several libraries", () => {
  const half = ["1", "0", "1", "0"];
  const otherHalf = ["0", "1", "0", "1"];

  it("names a library with a different value of a rule", () => {
    expect(() => assertAgreement(valuesWith(otherHalf), ["rules"])).toThrow(
      "unleash-client: checkout-flow-variant-0 (rules) has another value for user 0",
    );
  });

  it("accepts a rollout with other users", () => {
    expect(() => assertAgreement(valuesWith(otherHalf), ["rollout"])).not.toThrow();
  });

  it("names a library whose rollout has too many users", () => {
    expect(() => assertAgreement(valuesWith(["1", "1", "1", "0"]), ["rollout"])).toThrow(
      "unleash-client: checkout-flow-variant-0 (rollout) is on for 75 %",
    );
  });

  function valuesWith(unleash: readonly string[]) {
    const same = Object.fromEntries(libraryNames.map((name) => [name, half]));
    return { ...same, "unleash-client": unleash } as Parameters<typeof assertAgreement>[0];
  }
});
