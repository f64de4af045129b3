import { checkUsageRecorded, type UsageRecorded } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import type { EnvironmentHour, Tally } from "../../src/usage/counting.ts";
import { maxFlagsOfEnvironment, maxVariationsOfEnvironment } from "../../src/usage/flag-counts.ts";
import { cutMessages } from "../../src/usage/usage-messages.ts";
import { id } from "../builders.ts";

const edge = "5f0c5bb0-55d0-4b2f-9f0e-1d0d57f7a001";
const hourBeganMs = Date.parse("2027-01-31T09:00:00.000Z");

function environment(number: number, fields: Partial<EnvironmentHour> = {}): EnvironmentHour {
  return {
    hourBeganMs,
    organizationId: id("org"),
    projectId: id("project"),
    environmentId: id("env", number),
    requests: { ...noRequests, flags: number },
    bulkAnswers: 0,
    bulkAnsweredAtMs: 0,
    flags: undefined,
    variationCounters: 0,
    ...fields,
  };
}

const noRequests = {
  ...{ flags: 0, values: 0, evaluate: 0, stream: 0, ruleset: 0, ruleset_stream: 0 },
  ...{ ofrep_flags: 0, ofrep_flag: 0, ofrep_stream: 0 },
};

const reds = new Map([["red", 2]]);

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

function cut(tally: Partial<Tally>, maxBytes?: number): { text: string; sent: UsageRecorded }[] {
  const whole = { environments: [], keys: new Map(), ...tally };
  const options = { edge, firstSequence: 7, ...(maxBytes === undefined ? {} : { maxBytes }) };
  return [...cutMessages(whole, options)].map(({ sequence, payload }) => {
    const checked = checkUsageRecorded(JSON.parse(payload));
    if (!checked.ok) throw new Error(checked.problem);
    expect(checked.value.sequence).toBe(sequence);
    return { text: payload, sent: checked.value };
  });
}

describe("given counts", () => {
  it("writes them in the format of the contract", () => {
    const counted = environment(1, {
      requests: { ...environment(1).requests, flags: 3, ofrep_flag: 2 },
      bulkAnswers: 3,
      bulkAnsweredAtMs: hourBeganMs + 1_500,
      flags: new Map([
        [id("flag"), { evaluations: 2, evaluatedAtMs: hourBeganMs + 7, variations: undefined }],
        [id("flag", 2), { evaluations: 3, evaluatedAtMs: hourBeganMs, variations: reds }],
      ]),
    });
    const keys = new Map([["abcdefghijklmnop", { usedAtMs: hourBeganMs + 1_500 }]]);
    const [message, ...more] = cut({ environments: [counted], keys });
    expect(more).toEqual([]);
    expect(message?.sent).toEqual({
      edge,
      sequence: 7,
      environments: [
        {
          hour: "2027-01-31T09:00:00.000Z",
          organization_id: id("org"),
          project_id: id("project"),
          environment_id: id("env"),
          requests: { flags: 3, ofrep_flag: 2 },
          bulk_answers: 3,
          bulk_answered_at: "2027-01-31T09:00:01.500Z",
          flags: [
            { flag_id: id("flag"), evaluations: 2, evaluated_at: "2027-01-31T09:00:00.007Z" },
            {
              ...{ flag_id: id("flag", 2), evaluations: 3, variations: { red: 2 } },
              evaluated_at: "2027-01-31T09:00:00.000Z",
            },
          ],
        },
      ],
      keys: [{ key_id: "abcdefghijklmnop", used_at: "2027-01-31T09:00:01.500Z" }],
    });
  });

  it("omits keys without a use, and writes null if there was no bulk response", () => {
    const keys = new Map([["abcdefghijklmnop", { usedAtMs: 0 }]]);
    const [message] = cut({ environments: [environment(1)], keys });
    expect(message?.sent.keys).toEqual([]);
    expect(message?.sent.environments[0]?.bulk_answered_at).toBeNull();
  });
});

describe("given more counts than fit into one message", () => {
  it("splits them into small, consecutively numbered messages without losing any", () => {
    const keys = new Map(numbers(300).map((number) => [`key${number}`, { usedAtMs: number }]));
    const messages = cut(
      { environments: numbers(200).map((one) => environment(one)), keys },
      4_096,
    );
    expect(messages.length).toBeGreaterThan(10);
    expect(messages.map(({ sent }) => sent.sequence)).toEqual(messages.map((_, at) => 7 + at));
    for (const { text } of messages) expect(text.length).toBeLessThan(4_096 + 500);
    const environments = messages.flatMap(({ sent }) => sent.environments);
    expect(environments.map(({ requests }) => requests.flags)).toEqual(numbers(200));
    expect(messages.flatMap(({ sent }) => sent.keys)).toHaveLength(300);
  });

  it("fits all flags and variations of an environment into one message below the broker's maximum size", () => {
    const evaluations = Number.MAX_SAFE_INTEGER;
    const longest = new Map([["v".repeat(64), evaluations]]);
    const flags = new Map(
      numbers(maxFlagsOfEnvironment).map((number) => {
        const variations = number > maxVariationsOfEnvironment ? undefined : longest;
        return [id("flag", number), { evaluations, evaluatedAtMs: hourBeganMs, variations }];
      }),
    );
    const messages = cut({
      environments: [...numbers(500).map((one) => environment(one)), environment(501, { flags })],
    });
    for (const { text } of messages) expect(text.length).toBeLessThan(1024 * 1024);
    const last = messages.flatMap(({ sent }) => sent.environments).at(-1);
    expect(last?.flags).toHaveLength(maxFlagsOfEnvironment);
  });

  it("creates each message lazily", () => {
    const environments = numbers(100).map((one) => environment(one));
    const messages = cutMessages(
      { environments, keys: new Map() },
      { edge, firstSequence: 1, maxBytes: 1_000 },
    );
    messages.next();
    const late = environments.at(-1) as EnvironmentHour;
    late.requests.flags = 1_000;
    expect([...messages].at(-1)?.payload).toContain('"flags":1000');
  });
});

describe("given no counts", () => {
  it("creates no message", () => expect(cut({})).toEqual([]));
});
