import type {
  AttributeCondition,
  Attributes,
  Condition,
  Outcome,
  Requirement,
  ResolvedState,
  Scalar,
} from "../src/index.ts";

/**
 * Reference evaluator for tests: a slow, direct implementation of the rules in `conformance/README.md`. It shares only
 * types with the compiled evaluator. It uses parts of the platform that the compiled evaluator avoids: case-insensitive
 * regular expressions, big integers, the text encoder.
 */
export function evaluateByReference(
  flag: ResolvedState,
  attributes: Attributes,
  project: Project = emptyProject,
): Outcome {
  if (!flag.enabled) return { value: false, variation: "off", reason: "disabled" };
  const unmet = (flag.requires ?? []).some((each) => !isMet(each, attributes, project));
  if (unmet) return { value: false, variation: "off", reason: "prerequisite_failed" };
  const unit = unitOf(flag, attributes);
  const inside = (percentage: number, isSplit: boolean) =>
    (percentage >= 100 && !(isSplit && unit === undefined)) ||
    (unit !== undefined && bucket(flag.bucket_seed ?? flag.key, unit) < hundredths(percentage));
  const split = (percentage: number, isSplit: boolean): Outcome =>
    inside(percentage, isSplit)
      ? { value: true, variation: "on", reason: "split" }
      : { value: false, variation: "off", reason: "split" };
  if (flag.targeting_rules.length === 0) {
    const isSplit = isSplitServe(flag.serve);
    if (flag.rollout_percentage < 100 || isSplit) return split(flag.rollout_percentage, isSplit);
    return { value: true, variation: "on", reason: "static" };
  }
  for (const rule of flag.targeting_rules) {
    if (!rule.conditions.every((condition) => holds(condition, attributes, project))) continue;
    if (rule.value === false) return { value: false, variation: "off", reason: "targeting_match" };
    const percentage = rule.rollout_percentage ?? flag.rollout_percentage;
    const isSplit = isSplitServe(rule.serve ?? flag.serve);
    if (percentage < 100 || isSplit) return split(percentage, isSplit);
    return { value: true, variation: "on", reason: "targeting_match" };
  }
  return { value: false, variation: "off", reason: "default" };
}

/** What flags refer to, by key. */
export type Project = {
  readonly flags: ReadonlyMap<string, ResolvedState>;
  readonly audiences: ReadonlyMap<string, ReferenceAudience>;
  /** Results of required flags by context and key. Without them, evaluation would take exponential time. */
  readonly results: WeakMap<Attributes, Map<string, Result>>;
  /** Whether flags are found, by key. */
  readonly found: Map<string, boolean>;
};

/** An audience whose list, if it has one, is a function of a text. */
export type ReferenceAudience = {
  readonly match: readonly (readonly AttributeCondition[])[];
  readonly list?: { readonly attribute: string; readonly has: (text: string) => boolean };
};

type Result = { readonly value: boolean; readonly variation: string | null };

/** Returns a project without results. */
export function createProject(
  flags: Project["flags"] = new Map(),
  audiences: Project["audiences"] = new Map(),
): Project {
  return { flags, audiences, results: new WeakMap(), found: new Map() };
}

const emptyProject = createProject();

/**
 * Returns whether a flag is found: the reference evaluator knows all of it and, if it is enabled, of what it refers to. A
 * flag that requires itself is not found.
 */
export function isFoundByReference(flag: ResolvedState, project: Project): boolean {
  const known = project.found.get(flag.key);
  if (known !== undefined) return known;
  // Holds while the flag is searched, so that a circle ends here.
  project.found.set(flag.key, false);
  const isFound = !isUnknownByReference(flag) && (!flag.enabled || refersToFound(flag, project));
  project.found.set(flag.key, isFound);
  return isFound;
}

function refersToFound(flag: ResolvedState, project: Project): boolean {
  const conditions = flag.targeting_rules.flatMap((rule) => rule.conditions);
  return [...(flag.requires ?? []), ...conditions].every((each) => {
    if ("audience" in each) return project.audiences.has(each.audience);
    if (!("flag" in each)) return true;
    const required = project.flags.get(each.flag);
    return required !== undefined && isFoundByReference(required, project);
  });
}

function isMet({ flag, is }: Requirement, attributes: Attributes, project: Project): boolean {
  const { value, variation } = resultOf(flag, attributes, project);
  if (typeof is === "string") return value === (is === "on");
  return variation !== null && is.includes(variation);
}

function resultOf(key: string, attributes: Attributes, project: Project): Result {
  const results = project.results.get(attributes) ?? new Map<string, Result>();
  project.results.set(attributes, results);
  const known = results.get(key);
  if (known !== undefined) return known;
  const flag = project.flags.get(key);
  if (flag === undefined) throw new Error(`The flag ${key} is unknown.`);
  const outcome = evaluateByReference(flag, attributes, project);
  const { value } = outcome;
  const variation =
    flag.variations === undefined
      ? outcome.variation
      : variationByReference(flag, attributes, project);
  results.set(key, { value, variation });
  return { value, variation };
}

function isInAudience(
  { match, list }: ReferenceAudience,
  attributes: Attributes,
  project: Project,
): boolean {
  const listed =
    list !== undefined &&
    elementsOf(list.attribute, attributes).some((element) => list.has(textOf(element)));
  return (
    listed ||
    match.some((conditions) =>
      conditions.every((condition) => holds(condition, attributes, project)),
    )
  );
}

/** Words of `needs` that the reference evaluator knows. */
const knownWords = ["audiences", "buckets", "lists", "match-case", "requires", "values"];
const knownTypes = ["boolean", "string", "number", "object"];

/** Returns whether a flag counts as not found, because the reference evaluator does not know a part of it. */
function isUnknownByReference(flag: ResolvedState & { needs?: readonly string[] }): boolean {
  const operators = flag.targeting_rules.flatMap(({ conditions }) => operatorsOf(conditions));
  return !(
    (flag.needs ?? []).every((word) => knownWords.includes(word)) &&
    knownTypes.includes(flag.value_type ?? "boolean") &&
    operators.every(isKnownOperator)
  );
}

const knownOperators: readonly string[] = [
  ...["equals", "not_equals", "contains", "not_contains", "starts_with", "ends_with"],
  ...["matches_regex", "in", "not_in", "gt", "gte", "lt", "lte"],
  ...["semver_eq", "semver_gt", "semver_gte", "semver_lt", "semver_lte"],
];

/** Returns the operators of conditions. References have none. */
export function operatorsOf(conditions: readonly Condition[]): string[] {
  return conditions.flatMap((condition) => ("operator" in condition ? [condition.operator] : []));
}

export const isKnownOperator = (operator: string): boolean => knownOperators.includes(operator);

const isSplitServe = (serve: ResolvedState["serve"]): boolean =>
  serve !== undefined && "split" in serve;

/** Returns the key of the variation of a typed flag; null for the caller's default. */
export function variationByReference(
  flag: ResolvedState,
  attributes: Attributes,
  project: Project = emptyProject,
): string | null {
  const outcome = evaluateByReference(flag, attributes, project);
  if (!outcome.value) return flag.off_variation ?? null;
  const rule = flag.targeting_rules.find(({ conditions }) =>
    conditions.every((condition) => holds(condition, attributes, project)),
  );
  const serve = rule?.serve ?? flag.serve;
  if (serve === undefined || "variation" in serve) return serve?.variation ?? null;
  const at = Number(bucket(flag.bucket_seed ?? flag.key, unitOf(flag, attributes) ?? "", 1n));
  const share = serve.split.find(({ ranges }) =>
    ranges.some(([from, to]) => from <= at && at < to),
  );
  return share?.variation ?? null;
}

/** Returns the text that selects the bucket. */
function unitOf({ bucket_by }: ResolvedState, attributes: Attributes): string | undefined {
  const value = attributes.get(bucket_by ?? "id");
  if (bucket_by !== undefined && value === "") return undefined;
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}

/** Reads the hundredths from the decimal notation. */
function hundredths(percentage: number): bigint {
  const [whole = "0", decimals = ""] = percentage.toFixed(2).split(".");
  return BigInt(whole) * 100n + BigInt(decimals);
}

const namesOfId = ["user_id", "targetingKey"];

const positives: Record<string, string> = {
  not_equals: "equals",
  not_contains: "contains",
  not_in: "in",
};

function holds(condition: Condition, attributes: Attributes, project: Project): boolean {
  if ("flag" in condition) return isMet(condition, attributes, project);
  if ("audience" in condition) {
    const audience = project.audiences.get(condition.audience);
    return audience !== undefined && isInAudience(audience, attributes, project);
  }
  const { attribute, operator, value, match_case } = condition;
  const elements = elementsOf(attribute, attributes);
  if (elements.length === 0) return false;
  const positive = positives[operator];
  if (positive !== undefined) {
    if (!fits(positive, value)) return false;
    return !elements.some((element) => compare(positive, element, value, match_case));
  }
  return elements.some((element) => compare(operator, element, value, match_case));
}

/** Returns the values of an attribute; none if it is missing. */
function elementsOf(attribute: string, attributes: Attributes): readonly Scalar[] {
  const id = namesOfId.includes(attribute) ? attributes.get("id") : undefined;
  const given = id ?? attributes.get(attribute);
  if (given === undefined) return [];
  return (Array.isArray(given) ? given : [given]) as readonly Scalar[];
}

function textOf(value: Scalar): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function fits(operator: string, value: AttributeCondition["value"]): boolean {
  return operator === "in"
    ? Array.isArray(value) || typeof value === "string"
    : !Array.isArray(value);
}

function compare(
  operator: string,
  given: Scalar,
  value: AttributeCondition["value"],
  matchCase = false,
): boolean {
  const flags = matchCase ? "u" : "iu";
  if (operator === "in") {
    if (!fits(operator, value)) return false;
    const items =
      typeof value === "string"
        ? value.split(",").flatMap((item) => (item.trim() === "" ? [] : [item.trim()]))
        : (value as readonly Scalar[]);
    return items.some((item) => compare("equals", given, item, matchCase));
  }
  if (Array.isArray(value)) return false;
  const wanted = value as Scalar;
  if (operator.startsWith("semver_")) return compareVersions(operator, given, wanted);
  if (["gt", "gte", "lt", "lte"].includes(operator)) return compareNumbers(operator, given, wanted);
  const plain = textOf(given);
  const pattern = textOf(wanted);
  switch (operator) {
    case "equals":
      return new RegExp(`^${literal(pattern)}$`, flags).test(plain);
    case "contains":
      return new RegExp(literal(pattern), flags).test(plain);
    case "starts_with":
      return new RegExp(`^${literal(pattern)}`, flags).test(plain);
    case "ends_with":
      return new RegExp(`${literal(pattern)}$`, flags).test(plain);
    case "matches_regex":
      return matchesRegex(pattern, plain);
    default:
      return false;
  }
}

/** Escapes every character by its code point, so that none has a special meaning. */
function literal(text: string): string {
  return [...text].map((each) => `\\u{${each.codePointAt(0)?.toString(16)}}`).join("");
}

/** Supports patterns with the same meaning in RE2 and in JavaScript, and a leading `(?i)`. */
function matchesRegex(pattern: string, text: string): boolean {
  const ignoresCase = pattern.startsWith("(?i)");
  try {
    return new RegExp(ignoresCase ? pattern.slice(4) : pattern, ignoresCase ? "iu" : "u").test(
      text,
    );
  } catch {
    return false;
  }
}

function compareNumbers(operator: string, given: Scalar, wanted: Scalar): boolean {
  for (const measure of [numberOf, instantOf]) {
    const [a, b] = [measure(given), measure(wanted)];
    if (a === undefined || b === undefined) continue;
    if (operator === "gt") return a > b;
    if (operator === "gte") return a >= b;
    return operator === "lt" ? a < b : a <= b;
  }
  return false;
}

function numberOf(value: Scalar): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value === "boolean") return undefined;
  if (!/^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/.test(value)) return undefined;
  return Number.isFinite(Number.parseFloat(value)) ? Number.parseFloat(value) : undefined;
}

function instantOf(value: Scalar): number | undefined {
  if (typeof value !== "string") return undefined;
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.exec(value);
  if (match === null) return undefined;
  const ms = Date.parse(`${match[1]}${(match[2] ?? ".0").slice(0, 4)}${match[3]}`);
  return Number.isNaN(ms) ? undefined : ms;
}

// https://semver.org, "Is there a suggested regular expression (RegEx) to check a SemVer string?"
const officialSemver =
  /^(?<major>0|[1-9]\d*)\.(?<minor>0|[1-9]\d*)\.(?<patch>0|[1-9]\d*)(?:-(?<pre>(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+(?<build>[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$/;

function versionOf(value: Scalar): { core: bigint[]; pre: string[] } | undefined {
  if (typeof value !== "string") return undefined;
  const padded = value
    .replace(/^v/, "")
    .replace(/^(\d+)(?=[-+]|$)/, "$1.0")
    .replace(/^(\d+\.\d+)(?=[-+]|$)/, "$1.0");
  const groups = officialSemver.exec(padded)?.groups;
  if (groups === undefined) return undefined;
  const core = [groups.major, groups.minor, groups.patch].map((part) => BigInt(part ?? ""));
  return { core, pre: groups.pre?.split(".") ?? [] };
}

function compareVersions(operator: string, given: Scalar, wanted: Scalar): boolean {
  const [a, b] = [versionOf(given), versionOf(wanted)];
  if (a === undefined || b === undefined) return false;
  const order = precedence(a, b);
  switch (operator) {
    case "semver_eq":
      return order === 0;
    case "semver_gt":
      return order > 0;
    case "semver_gte":
      return order >= 0;
    case "semver_lt":
      return order < 0;
    default:
      return operator === "semver_lte" && order <= 0;
  }
}

type Version = NonNullable<ReturnType<typeof versionOf>>;

function precedence(a: Version, b: Version): number {
  for (const [index, part] of a.core.entries()) {
    const other = b.core[index] ?? 0n;
    if (part !== other) return part < other ? -1 : 1;
  }
  if (a.pre.length === 0 || b.pre.length === 0) return b.pre.length - a.pre.length;
  for (const [index, part] of a.pre.entries()) {
    const other = b.pre[index];
    if (other === undefined) return 1;
    const [isNumber, isOtherNumber] = [/^\d+$/.test(part), /^\d+$/.test(other)];
    if (isNumber && isOtherNumber) {
      if (BigInt(part) !== BigInt(other)) return BigInt(part) < BigInt(other) ? -1 : 1;
    } else if (isNumber !== isOtherNumber) {
      return isNumber ? -1 : 1;
    } else if (part !== other) {
      return part < other ? -1 : 1;
    }
  }
  return a.pre.length - b.pre.length;
}

/** Computes a bucket by MurmurHash3 x86 32-bit in big integers, truncated to 32 bits explicitly. */
export function bucket(key: string, id: string, seed = 0n): bigint {
  const cut = (x: bigint) => x & 0xffffffffn;
  const rotate = (x: bigint, by: bigint) => cut((x << by) | (x >> (32n - by)));
  const bytes = [...new TextEncoder().encode(`${key}:${id}`)].map(BigInt);
  const mix = (part: bigint[]) => {
    const word = part.reduceRight((sum, byte) => (sum << 8n) | byte, 0n);
    return cut(rotate(cut(word * 0xcc9e2d51n), 15n) * 0x1b873593n);
  };
  let hash = seed;
  let at = 0;
  for (; at + 4 <= bytes.length; at += 4) {
    hash = cut(rotate(hash ^ mix(bytes.slice(at, at + 4)), 13n) * 5n + 0xe6546b64n);
  }
  hash ^= mix(bytes.slice(at)) ^ BigInt(bytes.length);
  hash = cut((hash ^ (hash >> 16n)) * 0x85ebca6bn);
  hash = cut((hash ^ (hash >> 13n)) * 0xc2b2ae35n);
  return (hash ^ (hash >> 16n)) % 10_000n;
}
