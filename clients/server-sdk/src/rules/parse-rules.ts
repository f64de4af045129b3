import { findUnknown, type ResolvedState } from "@halyard/evaluation";
import { isRecord } from "./is-record.ts";
import { type AudienceRules, readAudiences } from "./parse-audiences.ts";
import { haveUsableValues } from "./usable-values.ts";

/** A value that a typed flag can have: a text, a number or a JSON object. */
export type Variation = { readonly key: string; readonly value: unknown };

/** The settings of a flag in one environment, under the names of the API. */
export type FlagRules = Omit<ResolvedState, "variations"> & {
  readonly variations?: readonly Variation[] | undefined;
  readonly version: number;
  /** Features that an evaluator must support. The cache file keeps them, for the version that reads it. */
  readonly needs?: readonly string[];
};

/** Checks of the members of `FlagRules`. A new member of the evaluator's type does not compile until it is here. */
export const memberChecks: {
  readonly [Member in keyof Required<Omit<FlagRules, "key">>]: (value: unknown) => boolean;
} = {
  enabled: (value) => typeof value === "boolean",
  rollout_percentage: (value) => typeof value === "number",
  targeting_rules: Array.isArray,
  bucket_by: isTextIfPresent,
  bucket_seed: isTextIfPresent,
  serve: isObjectIfPresent,
  off_variation: (value) => value === null || isTextIfPresent(value),
  requires: (value) => value === undefined || (Array.isArray(value) && value.every(isRequirement)),
  value_type: isTextIfPresent,
  variations: (value) => value === undefined || Array.isArray(value),
  version: (value) => typeof value === "number",
  needs: isListOfTextIfPresent,
};

function isTextIfPresent(value: unknown): value is string | undefined {
  return value === undefined || typeof value === "string";
}

function isObjectIfPresent(value: unknown): boolean {
  return value === undefined || (typeof value === "object" && value !== null);
}

function isListOfTextIfPresent(value: unknown): value is string[] | undefined {
  return value === undefined || isListOfText(value);
}

function isListOfText(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

function isRequirement(value: unknown): boolean {
  if (!isRecord(value) || typeof value.flag !== "string") return false;
  return value.is === "on" || value.is === "off" || Array.isArray(value.is);
}

const members = Object.entries(memberChecks);

/** All flags of an environment, and the audiences that they use. */
export type Rules = {
  /** Deltas do not contain it. */
  readonly projectId?: string | undefined;
  readonly environmentId: string;
  readonly flags: ReadonlyMap<string, FlagRules>;
  readonly audiences: ReadonlyMap<string, AudienceRules>;
  /** Flags that this version cannot evaluate, because a later release added something that they use. */
  readonly unsupported: ReadonlyMap<string, UnsupportedFlag>;
};

/** A flag as it was received, for the cache file, and the part that this version does not know. */
export type UnsupportedFlag = { readonly received: object; readonly unknown: string };

/** The format of rule sets that this version reads. */
export const format = 2;

/** Changed flags and audiences, and the keys of removed ones. */
export type RulesChange = Rules & {
  readonly removed: readonly string[];
  readonly removedAudiences: readonly string[];
};

/** An event of the stream: everything if `full`, otherwise a change. */
type RulesEvent = RulesChange & { readonly full: boolean };

type Parsed<T> = { ok: true; value: T } | { ok: false; problem: string };

/**
 * Parses the body of a rule set. A body with an incomplete flag is rejected as a whole, so that a damaged
 * response never replaces part of the flags. Unknown members are ignored.
 */
export function parseRules(text: string): Parsed<Rules> {
  const parsed = parseJson(text);
  return parsed.ok ? readRules(parsed.value) : parsed;
}

export function parseRulesEvent(text: string): Parsed<RulesEvent> {
  const parsed = parseJson(text);
  if (!parsed.ok) return parsed;
  const rules = readRules(parsed.value);
  if (!rules.ok) return rules;
  const {
    full,
    removed = [],
    removed_audiences: removedAudiences = [],
  } = parsed.value as Record<string, unknown>;
  if (full !== undefined && typeof full !== "boolean") return problem("full is not a boolean");
  if (!isListOfText(removed)) return problem("removed is not a list of keys");
  if (!isListOfText(removedAudiences)) return problem("removed_audiences is not a list of keys");
  return { ok: true, value: { ...rules.value, full: full === true, removed, removedAudiences } };
}

/** Reads the members that rule sets and events share. */
function readRules(value: unknown): Parsed<Rules> {
  if (!isRecord(value)) return problem("it is not an object");
  if (value.format !== format) return problem(`it is not in format ${format}`);
  const { environment_id: environmentId, flags } = value;
  const projectId = typeof value.project_id === "string" ? value.project_id : undefined;
  if (typeof environmentId !== "string" || environmentId === "")
    return problem("environment_id is missing");
  if (!isRecord(flags)) return problem("flags is not an object");
  const audiences = readAudiences(value.audiences);
  if (audiences === undefined) return problem("audiences is not an object");
  // Maps, because a key such as `__proto__` must not reach the prototype of an object.
  const byKey = new Map<string, FlagRules>();
  const unsupported = new Map<string, UnsupportedFlag>();
  for (const key of Object.keys(flags)) {
    const received = flags[key];
    if (!isRecord(received)) return problem("the settings of a flag are incomplete");
    const unknown = findUnknownIn(received);
    if (unknown !== undefined) {
      unsupported.set(key, { received, unknown });
      continue;
    }
    const rules = readFlag(key, received);
    if (rules === undefined) return problem("the settings of a flag are incomplete");
    if (!haveUsableValues(rules)) return problem("the values of a flag are invalid");
    byKey.set(key, rules);
  }
  return { ok: true, value: { projectId, environmentId, flags: byKey, audiences, unsupported } };
}

/**
 * Returns the first part of a flag that this version does not know; undefined if it knows all parts. The other members
 * are not checked, because a later release can have changed their form.
 */
function findUnknownIn(received: Record<string, unknown>) {
  const { needs, value_type, targeting_rules: rules, requires } = received;
  return findUnknown({
    needs: isListOfTextIfPresent(needs) ? needs : [],
    value_type: isTextIfPresent(value_type) ? value_type : undefined,
    targeting_rules: Array.isArray(rules) ? rules : [],
    requires: Array.isArray(requires) ? requires : [],
  });
}

function readFlag(key: string, value: Record<string, unknown>): FlagRules | undefined {
  const rules: Record<string, unknown> = { key };
  for (const [name, isValid] of members) {
    if (!isValid(value[name])) return undefined;
    if (name in value) rules[name] = value[name];
  }
  return rules as FlagRules;
}

function parseJson(text: string): Parsed<unknown> {
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch {
    return problem("it is not JSON");
  }
}

function problem(text: string): { ok: false; problem: string } {
  return { ok: false, problem: text };
}
