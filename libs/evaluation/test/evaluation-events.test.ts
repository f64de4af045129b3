import {
  createEvaluationHook,
  EvaluationEvents,
  type EvaluationEventsOptions,
} from "@halyard/evaluation/events";
import { beforeEach, describe, expect, it } from "@jest/globals";

type Event = Parameters<EvaluationEventsOptions["logger"]["emit"]>[0];
type Evaluated = Parameters<EvaluationEvents["count"]>[0];

let emitted: Event[] = [];
let warnings: string[] = [];
/** Timers that have neither fired nor been cancelled. */
let timers = new Set<() => void>();
let emit: (event: Event) => void;
beforeEach(() => {
  emitted = [];
  warnings = [];
  timers = new Set();
  emit = (event) => void emitted.push(event);
});

const surroundings = {
  after(delayMs: number, callback: () => void) {
    expect(delayMs).toBe(60_000);
    timers.add(callback);
    return () => void timers.delete(callback);
  },
  warn: (message: string) => void warnings.push(message),
};

function create(): EvaluationEvents {
  const logger = { emit: (event: Event) => emit(event) };
  return new EvaluationEvents({ logger }, { ...surroundings, setId: () => undefined });
}

/** Lets a minute pass. */
function fire(): void {
  for (const callback of [...timers]) {
    timers.delete(callback);
    callback();
  }
}

const on: Evaluated = { key: "checkout", variant: "on", value: true, reason: "static", version: 3 };
const missing: Evaluated = {
  ...{ key: "unknown", variant: undefined, value: false },
  ...{ reason: "error", errorType: "flag_not_found" },
};
const counts = () => emitted.map(({ attributes }) => attributes["halyard.evaluation.count"]);
const attribute = (name: string) => emitted.map(({ attributes }) => attributes[name]);

describe("given evaluations with the same result", () => {
  it("emits one event a minute with their number", () => {
    const events = create();
    for (let time = 0; time < 1_000; time += 1) events.count(on);
    expect(emitted).toEqual([]);
    fire();
    expect(
      emitted.map(({ eventName, severityNumber, attributes }) => [
        ...[eventName, severityNumber, attributes],
      ]),
    ).toEqual([
      [
        "feature_flag.evaluation",
        9,
        {
          "feature_flag.key": "checkout",
          "feature_flag.provider.name": "halyard",
          "feature_flag.result.reason": "static",
          "feature_flag.result.variant": "on",
          "feature_flag.version": "3",
          "halyard.evaluation.count": 1_000,
        },
      ],
    ]);
  });

  it("emits nothing for a minute without evaluations, and counts the next one from zero", () => {
    const events = create();
    events.count(on);
    fire();
    expect(timers.size).toBe(0);
    events.count(on);
    events.count(on);
    fire();
    expect(counts()).toEqual([1, 2]);
  });

  it("emits the counts when it is flushed, once", () => {
    const events = create();
    events.count(on);
    events.flush();
    expect(counts()).toEqual([1]);
    expect(timers.size).toBe(0);
    events.flush();
    expect(counts()).toEqual([1]);
  });
});

describe("given evaluations with different results", () => {
  it.each<[string, Partial<Evaluated>]>([
    ["key", { key: "other" }],
    ["variation", { variant: "off" }],
    ["reason", { reason: "split" }],
    ["version", { version: 4 }],
    ["user", { contextId: "u-1" }],
    ["error", { errorType: "type_mismatch" }],
  ])("counts each %s separately", (_name, given) => {
    const events = create();
    events.count(on);
    events.count({ ...on, ...given });
    events.count(on);
    fire();
    expect(counts()).toEqual([2, 1]);
  });

  it("does not confuse the users of different flags", () => {
    const events = create();
    events.count({ ...on, key: "a\nb", contextId: "c" });
    events.count({ ...on, key: "a", contextId: "b\nc" });
    fire();
    expect(attribute("feature_flag.key")).toEqual(["a\nb", "a"]);
  });
});

describe("given results without a variation", () => {
  it.each([true, 0, Number.NaN, "", "x".repeat(256)])("has the default %p", (value) => {
    const events = create();
    events.count({ ...missing, value });
    events.count({ ...missing, value });
    fire();
    expect(attribute("feature_flag.result.value")).toEqual([value]);
    expect(counts()).toEqual([2]);
  });

  it.each([[{ limit: 1 }], [null], ["x".repeat(257)]])("leaves out the default %p", (value) => {
    const events = create();
    events.count({ ...missing, value });
    fire();
    expect(emitted[0]?.attributes).not.toHaveProperty(["feature_flag.result.value"]);
  });

  it("counts different defaults separately", () => {
    const events = create();
    for (const value of [1, "1", true, "true"]) events.count({ ...missing, value });
    fire();
    expect(attribute("feature_flag.result.value")).toEqual([1, "1", true, "true"]);
  });
});

describe("given more different results than are counted", () => {
  const limit = 2_000;
  const countUnknown = (events: EvaluationEvents, flags: number) => {
    for (let flag = 0; flag < flags; flag += 1) events.count({ ...missing, key: `flag-${flag}` });
  };

  it("counts as many unknown flags as the limit, and warns of no loss", () => {
    const events = create();
    countUnknown(events, limit);
    countUnknown(events, limit);
    fire();
    expect(counts()).toEqual(Array.from({ length: limit }, () => 2));
    expect(warnings).toEqual([]);
  });

  it("warns with the number of evaluations that are in no event, and counts known flags", () => {
    const events = create();
    countUnknown(events, limit + 5);
    events.count(on);
    fire();
    expect(emitted).toHaveLength(limit + 1);
    expect(warnings).toEqual([
      "5 evaluations are in no event: a minute had more than 2000 users, defaults and errors.",
    ]);
  });

  it("limits users likewise", () => {
    const events = create();
    for (let user = 0; user <= limit; user += 1) events.count({ ...on, contextId: `u-${user}` });
    fire();
    expect(emitted).toHaveLength(limit);
    expect(warnings).toHaveLength(1);
  });

  it("has no limit for known flags, which leave the limit to others", () => {
    const events = create();
    for (let flag = 0; flag <= limit; flag += 1) events.count({ ...on, key: `known-${flag}` });
    countUnknown(events, limit);
    fire();
    expect(emitted).toHaveLength(2 * limit + 1);
    expect(warnings).toEqual([]);
  });

  it("counts again in the next minute, and warns once an hour of the losses of the hour", () => {
    const events = create();
    for (let minute = 0; minute < 62; minute += 1) {
      countUnknown(events, limit + 1);
      fire();
    }
    expect(emitted).toHaveLength(62 * limit);
    expect(warnings.map((line) => Number.parseInt(line, 10))).toEqual([1, 61]);
  });
});

describe("given a logger that throws", () => {
  it("warns, and emits the later events", () => {
    const events = create();
    emit = () => {
      throw new RangeError("full");
    };
    events.count(on);
    events.count(on);
    fire();
    expect(warnings).toEqual(["2 evaluations are in no event: the logger threw RangeError."]);
    emit = (event) => void emitted.push(event);
    events.count(on);
    fire();
    expect(counts()).toEqual([1]);
  });
});

describe("given a hook of OpenFeature", () => {
  const details = { value: true, variant: "on", reason: "TARGETING_MATCH", flagMetadata: {} };
  const context = { targetingKey: "u-1" };
  const createHook = (options: Partial<Parameters<typeof createEvaluationHook>[0]> = {}) =>
    createEvaluationHook({ logger: { emit: (event) => emit(event) }, ...options }, surroundings);

  it("counts the details, with the version and the flag set of the metadata", () => {
    const hook = createHook();
    const flagMetadata = { version: 7, flagSetId: "p/e" };
    hook.finally({ flagKey: "checkout", context }, { ...details, flagMetadata });
    hook.flush();
    expect(emitted[0]?.attributes).toEqual({
      "feature_flag.key": "checkout",
      "feature_flag.provider.name": "halyard",
      "feature_flag.result.reason": "targeting_match",
      "feature_flag.result.variant": "on",
      "feature_flag.set.id": "p/e",
      "feature_flag.version": "7",
      "halyard.evaluation.count": 1,
    });
  });

  it("counts errors with the default, and a missing reason as unknown", () => {
    const hook = createHook({ setId: "p/e" });
    const error = { value: "blue", reason: "ERROR", errorCode: "TYPE_MISMATCH" };
    const failed = { ...error, errorMessage: "The flag has another type.", flagMetadata: {} };
    hook.finally({ flagKey: "color", context }, failed);
    hook.finally({ flagKey: "color", context }, { value: "red", flagMetadata: {} });
    hook.flush();
    expect(emitted.map(({ attributes }) => attributes)).toMatchObject([
      {
        "feature_flag.result.value": "blue",
        "feature_flag.result.reason": "error",
        "feature_flag.set.id": "p/e",
        "error.type": "type_mismatch",
        "feature_flag.error.message": "The flag has another type.",
      },
      { "feature_flag.result.reason": "unknown" },
    ]);
  });

  it.each([
    [undefined, undefined],
    [true, "u-1"],
  ])("with contextId %p, has the targeting key %p", (contextId, expected) => {
    const hook = createHook({ contextId });
    hook.finally({ flagKey: "checkout", context }, details);
    hook.flush();
    expect(attribute("feature_flag.context.id")).toEqual([expected]);
  });
});
