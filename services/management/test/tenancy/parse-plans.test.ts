import { afterEach, describe, expect, it } from "@jest/globals";
import { readConfig } from "../../src/config.ts";
import { parsePlans } from "../../src/tenancy/parse-plans.ts";

const team = { requests_per_month: 5_000_000, sse_connections: 200, projects: null };
const problemsOf = (plans: unknown) => parsePlans(JSON.stringify(plans));

describe("given plans of an operator", () => {
  it("accepts valid plans", () => {
    expect(problemsOf({ team })).toEqual({ plans: { team } });
  });

  it.each([["5000000"], [-1], [0.5], [true], [undefined]])(
    "names the plan and the field if a limit is %p",
    (sse_connections) => {
      expect(problemsOf({ team: { ...team, sse_connections } })).toEqual({
        problems: [
          'has the plan "team", whose sse_connections must be a whole number from 0, or null',
        ],
      });
    },
  );

  it("reports all problems", () => {
    expect(problemsOf({ team: { ...team, projects: "" }, other: 1 })).toEqual({
      problems: [
        'has the plan "team", whose projects must be a whole number from 0, or null',
        'has the plan "other", which must be an object with requests_per_month, sse_connections, projects and configuration_bytes',
      ],
    });
  });

  it("rejects unknown fields", () => {
    expect(problemsOf({ team: { ...team, seats: 3 } })).toEqual({
      problems: [
        'has the plan "team", which must have only requests_per_month, sse_connections, projects and configuration_bytes',
      ],
    });
  });

  it.each(["", "x".repeat(51)])("rejects invalid names without repeating them", (name) => {
    expect(problemsOf({ [name]: team })).toEqual({
      problems: ["has a plan whose name must be of 1 to 50 characters"],
    });
  });

  it.each(["{secret", "[]", "7", "null"])("rejects %s without repeating it", (text) => {
    expect(parsePlans(text)).toEqual({
      problems: [
        "must be JSON that gives each plan requests_per_month, sse_connections, projects and configuration_bytes",
      ],
    });
  });
});

describe("given an invalid PLANS variable", () => {
  const before = process.env.PLANS;
  afterEach(() => {
    if (before === undefined) delete process.env.PLANS;
    else process.env.PLANS = before;
  });

  it("reports each problem as a sentence", () => {
    process.env.PLANS = JSON.stringify({ team: { ...team, projects: "3" } });
    expect(readConfig).toThrow(
      expect.objectContaining({
        problems: expect.arrayContaining([
          'PLANS has the plan "team", whose projects must be a whole number from 0, or null.',
        ]),
      }),
    );
  });
});
