import type { Serve, ServeInput, TargetingRule, TargetingRuleInput } from "@halyard/contracts";
import {
  type Allocation,
  allocateRanges,
  buckets,
  hundredths,
  type Range,
  sizeOf,
} from "@halyard/evaluation";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import type { Content, Flag, RequestedContent } from "./flag.ts";
import type { CheckedRules } from "./targeting-rules.ts";

/** The served variations of typed flags: checks that need the flag, and the buckets of splits. */

/** Maximum number of ranges of a split. */
const maxRanges = 500;

type Split = Extract<ServeInput, { split: unknown }>["split"];

/** Rejects a split that does not cover all users once. It needs only the request. */
export function checkServe(serve: ServeInput | undefined, pointer: string): Problem | undefined {
  if (serve === undefined || !("split" in serve)) return undefined;
  const { split } = serve;
  let sum = 0;
  for (const [index, { variation, weight }] of split.entries()) {
    const size = hundredths(weight);
    if (size === undefined)
      return invalid(`${pointer}/split/${index}/weight must have at most two decimals`);
    if (split.findIndex((other) => other.variation === variation) < index)
      return invalid(`${pointer}/split/${index}/variation must be in the split only once`);
    sum += size;
  }
  if (sum !== buckets)
    return invalid(`${pointer}/split must have weights that add up to 100, not ${sum / 100}`);
  return checkRanges(split, `${pointer}/split`);
}

/** Rejects ranges that are not given for all members, do not fit the weights, or overlap. */
function checkRanges(split: Split, pointer: string): Problem | undefined {
  const given = split.filter(({ ranges }) => ranges !== undefined);
  if (given.length === 0) return undefined;
  if (given.length < split.length)
    return invalid(`${pointer} must have ranges for all of its members, or for none`);
  for (const [index, { weight, ranges = [] }] of split.entries()) {
    if (!isAscending(ranges))
      return invalid(`${pointer}/${index}/ranges must be ascending and must not overlap`);
    if (sizeOf(ranges) !== hundredths(weight))
      return invalid(`${pointer}/${index}/ranges must have ${weight} % of the 10,000 buckets`);
  }
  const all = split.flatMap(({ ranges = [] }) => ranges).sort(([one], [other]) => one - other);
  if (all.length > maxRanges)
    return invalid(`${pointer} must have at most ${maxRanges} ranges, not ${all.length}`);
  return isAscending(all) ? undefined : invalid(`${pointer} must cover each bucket once`);
}

const isAscending = (ranges: readonly Range[]): boolean =>
  ranges.every(([from, to], index) => from < to && from >= (ranges[index - 1]?.[1] ?? 0));

const invalid = (message: string): Problem => createProblem("VALIDATION_001", message);

type Typed = Pick<Flag, "valueType" | "variations">;

/** Returns a problem if a request does not fit the flag: members of another type, or variations that it lacks. */
export function checkFitsFlag(
  { variations, valueType }: Typed,
  request: RequestedContent,
  parent: string,
): Problem | undefined {
  const used = usesOf(request);
  const [first] = used;
  if (variations === null) {
    const path = request.off_variation === null ? "/off_variation" : first?.pointer;
    if (path === undefined) return undefined;
    // The member itself is wrong, not its content.
    const [member = path] = path.match(/^.*?\/serve|^.*/) ?? [];
    return invalid(`${parent}${member} must be absent for a flag of the type ${valueType}`);
  }
  const unknown = used.find(({ variation }) => !variations.some(({ key }) => key === variation));
  if (unknown !== undefined)
    return invalid(`${parent}${unknown.pointer} must be the key of a variation of the flag`);
  return checkRuleIds(request.targeting_rules, parent);
}

/** The earlier split of a rule is found by its id. */
function checkRuleIds(
  rules: readonly TargetingRuleInput[] = [],
  parent: string,
): Problem | undefined {
  const ids = rules.map(({ id }) => id);
  const repeated = ids.findIndex((id, index) => id !== undefined && ids.indexOf(id) < index);
  if (repeated === -1) return undefined;
  return invalid(`${parent}/targeting_rules/${repeated}/id must be unique in the state`);
}

/** A variation that a state uses, and the JSON pointer to it. */
type Use = { variation: string; pointer: string };

/** Returns the variations that a state uses. */
export function usesOf(content: RequestedContent): Use[] {
  const { off_variation: off, targeting_rules: rules = [] } = content;
  return [
    ...usesOfServe(content.serve, "/serve"),
    ...(typeof off === "string" ? [{ variation: off, pointer: "/off_variation" }] : []),
    ...rules.flatMap(({ serve }, index) => usesOfServe(serve, `/targeting_rules/${index}/serve`)),
  ];
}

function usesOfServe(serve: ServeInput | undefined, pointer: string): Use[] {
  if (serve === undefined) return [];
  if ("variation" in serve) return [{ ...serve, pointer: `${pointer}/variation` }];
  return serve.split.map(({ variation }, index) => ({
    variation,
    pointer: `${pointer}/split/${index}/variation`,
  }));
}

/**
 * Returns the requested members with the buckets of all splits. A split moves as few users as possible: the buckets of
 * the state, and those of the rule with the same id, are kept where the weights allow it.
 */
export function resolveServe(
  before: Content,
  request: RequestedContent,
  { isTyped, newId, parent }: { isTyped: boolean; newId: () => string; parent: string },
): Partial<Pick<Content, "serve" | "targeting_rules">> | Problem {
  const serve = resolve(before.serve, request.serve, `${parent}/serve`);
  if (serve !== undefined && isProblem(serve)) return serve;
  if (request.targeting_rules === undefined) return serve === undefined ? {} : { serve };
  const rules: TargetingRule[] = [];
  for (const [index, { serve: own, ...rule }] of request.targeting_rules.entries()) {
    const pointer = `${parent}/targeting_rules/${index}/serve`;
    const earlier = before.targeting_rules.find(({ id }) => id !== undefined && id === rule.id);
    const resolved = resolve(earlier && (earlier.serve ?? before.serve), own, pointer);
    if (resolved !== undefined && isProblem(resolved)) return resolved;
    const withId = isTyped ? { ...rule, id: rule.id ?? newId() } : rule;
    rules.push(resolved ? { ...withId, serve: resolved } : withId);
  }
  return { ...(serve === undefined ? {} : { serve }), targeting_rules: rules as CheckedRules };
}

function resolve(
  before: Serve | undefined,
  given: ServeInput | undefined,
  pointer: string,
): Serve | Problem | undefined {
  if (given === undefined || "variation" in given) return given;
  const wanted = given.split.map(({ variation, weight }) => ({
    variation,
    size: Math.round(weight * 100),
  }));
  const explicit = given.split.map(({ variation, ranges = [] }) => [variation, ranges] as const);
  const isExplicit = given.split.some(({ ranges }) => ranges !== undefined);
  const allocated = allocateRanges(isExplicit ? new Map(explicit) : allocationOf(before), wanted);
  const count = [...allocated.values()].reduce((sum, ranges) => sum + ranges.length, 0);
  if (count > maxRanges)
    return createProblem(
      "CONFLICT_001",
      `${pointer}: the split would have ${count} ranges of buckets, more than ${maxRanges}. Send explicit ranges, which move other users.`,
    );
  return {
    split: wanted.map(({ variation, size }) => ({
      variation,
      weight: size / 100,
      ranges: (allocated.get(variation) ?? []).map(([from, to]): [number, number] => [from, to]),
    })),
  };
}

/** Returns the buckets of each variation. A variation that all users get has all of them. */
function allocationOf(serve: Serve | undefined): Allocation {
  if (serve === undefined) return new Map();
  if ("variation" in serve) return new Map([[serve.variation, [[0, buckets]]]]);
  return new Map(serve.split.map(({ variation, ranges }) => [variation, ranges]));
}
