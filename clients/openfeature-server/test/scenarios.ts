import type { EvaluationContext, JsonValue } from "@openfeature/core";
import type { Settings } from "../../server-sdk/test/support/fake-edge.ts";

/**
 * The evaluation scenarios of the OpenFeature specification: Appendix B (`evaluation_v2.feature`, a
 * suite for SDKs) and Appendix F (`provider-tck`, a suite for providers). Both suites are Gherkin files in the Git
 * repository of the specification. This table has the same flag keys, contexts and expectations.
 *
 * Two expectations differ:
 * - A boolean flag that is off for everyone is a disabled flag. Its reason is `DISABLED`, where the specification has
 *   `STATIC`.
 * - A disabled flag resolves to false, not to the default in the code. Appendix F leaves this to the provider
 *   (`@disabled-flags`).
 */
type Scenario = Evaluation & {
  /** Numbers of the requirements, or the appendix, that the scenario is from. */
  section: string;
  title: string;
  expected: { value: JsonValue; reason: string; variant?: string; errorCode?: string };
};

export type Evaluation = {
  type: "boolean" | "string" | "number" | "object";
  flagKey: string;
  fallback: JsonValue;
  context?: EvaluationContext;
};

/** The evaluations of the scenarios in which the provider is not ready (1.7.6) or in a fatal state (1.7.7). */
export const ofEachType: readonly Evaluation[] = [
  { type: "boolean", flagKey: "boolean-flag", fallback: true },
  { type: "string", flagKey: "string-flag", fallback: "bye" },
  { type: "number", flagKey: "integer-flag", fallback: 1 },
  { type: "object", flagKey: "object-flag", fallback: { a: 1 } },
];

const targetingKey = "5c3d8535-f81a-4478-a6d3-afaa4d51199e";
const otherTargetingKey = "f20bd32d-703b-48b6-bc8e-79d53c85134a";

const equals = (attribute: string, value: string | number | boolean) =>
  ({ attribute, operator: "equals", value }) as const;
const isBallmer = equals("email", "ballmer@macrosoft.com");

const typed = (value_type: "string" | "number" | "object", values: object): Settings => ({
  value_type,
  variations: Object.entries(values).map(([key, value]) => ({ key, value })),
  serve: { variation: Object.keys(values)[0] as string },
  off_variation: null,
});

/** The values of typed flags by variation. The first one is served. */
const template = { showImages: true, title: "Check out these pics!", imagesPerPage: 100 };
const greetings = typed("string", { greeting: "hi", parting: "bye", zero: "" });
const numbers = typed("number", { ten: 10, half: 0.5, zero: 0 });
const templates = typed("object", { template, empty: {} });

/** The flags of the scenarios. */
export const scenarioFlags: Readonly<Record<string, Settings>> = {
  "boolean-flag": { enabled: true },
  "boolean-zero-flag": { enabled: false },
  "boolean-disabled-flag": { enabled: false },
  "boolean-targeted-zero-flag": {
    enabled: true,
    targeting_rules: [{ conditions: [isBallmer], value: false }],
  },
  "targeting-key-flag": {
    enabled: true,
    targeting_rules: [{ conditions: [equals("id", targetingKey)] }],
  },
  "context-aware": {
    enabled: true,
    targeting_rules: [
      {
        conditions: [
          isBallmer,
          equals("role", "admin"),
          equals("age", 65),
          equals("customer", false),
        ],
      },
    ],
  },
  "split-flag": { enabled: true, rollout_percentage: 50 },
  "string-flag": greetings,
  "string-zero-flag": { ...greetings, serve: { variation: "zero" } },
  "integer-flag": numbers,
  "integer-zero-flag": { ...numbers, serve: { variation: "zero" } },
  "float-flag": { ...numbers, serve: { variation: "half" } },
  "object-flag": templates,
  "object-zero-flag": { ...templates, serve: { variation: "empty" } },
  "string-targeted-flag": {
    ...greetings,
    targeting_rules: [{ conditions: [isBallmer], serve: { variation: "parting" } }],
    off_variation: "greeting",
  },
  "string-disabled-flag": { ...greetings, enabled: false },
};

const error = (value: JsonValue, errorCode: string) => ({ value, reason: "ERROR", errorCode });
const on = (reason: string) => ({ value: true, reason, variant: "on" });
const off = (reason: string) => ({ value: false, reason, variant: "off" });

const ofBooleans: readonly Omit<Scenario, "type">[] = [
  {
    section: "1.3.1.1, 1.4.3, 1.4.6, 1.4.7",
    title: "resolves a boolean value, with variant and reason",
    flagKey: "boolean-flag",
    fallback: false,
    expected: on("STATIC"),
  },
  {
    section: "1.4.7",
    title: "resolves false, although the default is true",
    flagKey: "boolean-zero-flag",
    fallback: true,
    expected: off("DISABLED"),
  },
  {
    section: "1.4.7",
    title: "resolves a disabled flag",
    flagKey: "boolean-disabled-flag",
    fallback: false,
    expected: off("DISABLED"),
  },
  {
    section: "1.4.7",
    title: "resolves false for a context that matches a rule",
    flagKey: "boolean-targeted-zero-flag",
    fallback: true,
    context: { email: "ballmer@macrosoft.com" },
    expected: off("TARGETING_MATCH"),
  },
  {
    section: "1.4.7",
    title: "resolves the flag's default for a context that matches no rule",
    flagKey: "boolean-targeted-zero-flag",
    fallback: true,
    context: { email: "ballmer@none.com" },
    expected: off("DEFAULT"),
  },
  {
    section: "1.3.1.1",
    title: "resolves the flag's default for an empty context",
    flagKey: "boolean-targeted-zero-flag",
    fallback: true,
    expected: off("DEFAULT"),
  },
  {
    section: "1.3.1.1",
    title: "resolves the flag's default for an attribute that is null",
    flagKey: "boolean-targeted-zero-flag",
    fallback: true,
    context: { email: null },
    expected: off("DEFAULT"),
  },
  {
    section: "1.3.1.1",
    title: "resolves a rule with several attributes",
    flagKey: "context-aware",
    fallback: false,
    context: { email: "ballmer@macrosoft.com", role: "admin", age: 65, customer: false },
    expected: on("TARGETING_MATCH"),
  },
  {
    section: "Appendix F, evaluation",
    title: "resolves an untargeted flag the same way with a context",
    flagKey: "boolean-flag",
    fallback: false,
    context: { targetingKey: otherTargetingKey },
    expected: on("STATIC"),
  },
  {
    section: "Appendix F, @targeting",
    title: "resolves the rule that the targeting key matches",
    flagKey: "targeting-key-flag",
    fallback: false,
    context: { targetingKey },
    expected: on("TARGETING_MATCH"),
  },
  {
    section: "Appendix F, @targeting",
    title: "resolves the flag's default for another targeting key",
    flagKey: "targeting-key-flag",
    fallback: true,
    context: { targetingKey: otherTargetingKey },
    expected: off("DEFAULT"),
  },
  {
    section: "Appendix F, @targeting",
    title: "resolves the flag's default without a targeting key",
    flagKey: "targeting-key-flag",
    fallback: true,
    expected: off("DEFAULT"),
  },
  {
    section: "2.2.5",
    title: "reports a percentage as the reason",
    flagKey: "split-flag",
    fallback: true,
    expected: off("SPLIT"),
  },
  {
    section: "1.4.8, 1.4.9, 1.4.10",
    title: "returns the default for an unknown flag",
    flagKey: "missing-flag",
    fallback: true,
    expected: error(true, "FLAG_NOT_FOUND"),
  },
];

const value = (type: Evaluation["type"], flagKey: string, fallback: JsonValue) => ({
  ...{ section: "1.3.1.1, 1.4.3, 1.4.6, 1.4.7", type, flagKey, fallback },
  title: `resolves ${flagKey}, with variant and reason`,
});
const served = (served: JsonValue, variant: string, reason = "STATIC") => ({
  expected: { value: served, variant, reason },
});

const ofTypedFlags: readonly Scenario[] = [
  { ...value("string", "string-flag", "bye"), ...served("hi", "greeting") },
  { ...value("string", "string-zero-flag", "hi"), ...served("", "zero") },
  { ...value("number", "integer-flag", 1), ...served(10, "ten") },
  { ...value("number", "integer-zero-flag", 1), ...served(0, "zero") },
  { ...value("number", "float-flag", 0.1), ...served(0.5, "half") },
  { ...value("object", "object-flag", {}), ...served(template, "template") },
  { ...value("object", "object-zero-flag", { a: 1 }), ...served({}, "empty") },
  {
    ...value("string", "string-targeted-flag", "none"),
    title: "resolves the variation of the rule that the context matches",
    context: { email: "ballmer@macrosoft.com" },
    ...served("bye", "parting", "TARGETING_MATCH"),
  },
  {
    ...value("string", "string-targeted-flag", "none"),
    title: "resolves the variation for all other contexts",
    ...served("hi", "greeting", "DEFAULT"),
  },
  {
    section: "1.4.7, Appendix F, @disabled-flags",
    title: "resolves the default in the code without a variant, if the flag serves it",
    ...{ type: "string", flagKey: "string-disabled-flag", fallback: "none" },
    expected: { value: "none", reason: "DISABLED" },
  },
];

/** Evaluations of another type: of an unknown flag, of a boolean flag, and of a text flag. */
const ofOtherTypes = [
  { type: "string", ofUnknown: "fallback", ofMismatch: "bye", flagKey: "boolean-flag" },
  { type: "number", ofUnknown: 0.1, ofMismatch: 1, flagKey: "string-flag" },
  { type: "object", ofUnknown: { a: 1 }, ofMismatch: {}, flagKey: "integer-flag" },
  { type: "boolean", ofUnknown: true, ofMismatch: true, flagKey: "object-flag" },
] as const;

export const scenarios: readonly Scenario[] = [
  ...ofBooleans.map((scenario) => ({ type: "boolean" as const, ...scenario })),
  ...ofTypedFlags,
  ...ofOtherTypes.map(({ type, ofUnknown: fallback }) => ({
    section: "1.4.8, 1.4.9, 1.4.10, Appendix F, errors",
    title: `returns the default for an unknown flag of the type ${type}`,
    ...{ type, flagKey: "missing-flag", fallback, expected: error(fallback, "FLAG_NOT_FOUND") },
  })),
  ...ofOtherTypes.map(({ type, flagKey, ofMismatch: fallback }) => ({
    section: "1.3.4, Appendix F, errors",
    title: `returns the default for ${flagKey} that is read as the type ${type}`,
    ...{ type, flagKey, fallback, expected: error(fallback, "TYPE_MISMATCH") },
  })),
];
