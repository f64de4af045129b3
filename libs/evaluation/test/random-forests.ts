import fc from "fast-check";
import {
  type Audience,
  type CompiledFlag,
  compile,
  compileAudience,
  findMissing,
  type Requirement,
  type ResolvedState,
  type TargetingRule,
} from "../src/index.ts";
import { comparisons, flags, typedFlags, variationKeys } from "./random-flags.ts";
import { createProject, type Project, type ReferenceAudience } from "./reference-evaluator.ts";
import { chunksByReference } from "./reference-fingerprints.ts";

/** Random projects: audiences, and flags in levels, each of which requires flags of lower levels. */
export type Forest = {
  /** Required flags precede those that require them. */
  readonly flags: readonly ResolvedState[];
  readonly audiences: ReadonlyMap<string, RandomAudience>;
};

type RandomAudience = {
  readonly audience: Audience;
  readonly chunks: readonly Uint8Array[];
  readonly reference: ReferenceAudience;
};

const levels = 10;
const key = "0f0e0d0c0b0a09080706050403020100";

const members: fc.Arbitrary<string> = fc.constantFrom(
  "DE",
  "de",
  "at",
  "5",
  "true",
  "pro",
  "straße",
  "k",
  "1.2",
  "",
);

const lists = fc.record({
  attribute: fc.constantFrom("id", "user_id", "targetingKey", "country", "age", "__proto__"),
  entries: fc.uniqueArray(members, { maxLength: 8 }),
  bits: fc.integer({ min: 0, max: 3 }),
});

const audiences: fc.Arbitrary<RandomAudience> = fc
  .record({
    match: fc.array(fc.array(comparisons, { minLength: 1, maxLength: 2 }), { maxLength: 3 }),
    list: fc.option(lists, { nil: undefined }),
  })
  .map(({ match, list }) => {
    if (list === undefined) return { audience: { match }, chunks: [], reference: { match } };
    const { attribute, entries, bits } = list;
    const chunks = chunksByReference(key, entries, bits);
    const described = { attribute, count: entries.length, key, chunks: chunks.map(() => "") };
    const has = (text: string) => entries.includes(text);
    return {
      ...{ audience: { match, list: described }, chunks },
      reference: { match, list: { attribute, has } },
    };
  });

/** A reference whose target is chosen among what exists. */
type Link = { target: number; rule: number; is: Requirement["is"] };

const links: fc.Arbitrary<Link[]> = fc.array(
  fc.record({
    target: fc.nat(),
    rule: fc.nat(),
    is: fc.oneof(
      fc.constantFrom("on", "off"),
      fc.subarray([...variationKeys, "on", "off"], { minLength: 1 }),
    ),
  }),
  { maxLength: 4 },
);

type Node = {
  level: number;
  flag: ResolvedState;
  requires: Link[];
  inConditions: Link[];
  inAudiences: Link[];
};

const nodes: fc.Arbitrary<Node> = fc.record({
  level: fc.integer({ min: 0, max: levels - 1 }),
  flag: fc.oneof(flags, typedFlags),
  requires: links,
  inConditions: links,
  inAudiences: links,
});

/** Forests of up to 200 flags. Most are small, so that many can be evaluated. */
export const forests: fc.Arbitrary<Forest> = fc
  .tuple(
    fc.oneof(
      { weight: 30, arbitrary: fc.array(nodes, { maxLength: 30, size: "max" }) },
      { weight: 1, arbitrary: fc.array(nodes, { minLength: 150, maxLength: 200, size: "max" }) },
    ),
    // A flag can refer to four audiences. Sometimes one of them does not exist.
    fc.oneof(
      { weight: 4, arbitrary: fc.array(audiences, { minLength: 4, maxLength: 4 }) },
      { weight: 1, arbitrary: fc.array(audiences, { minLength: 3, maxLength: 3 }) },
    ),
  )
  .map(([unsorted, several]) => {
    const sorted = unsorted.toSorted((one, other) => one.level - other.level);
    return {
      flags: sorted.map((node, index) => ({ ...flagOf(node, sorted), key: `flag-${index}` })),
      audiences: new Map(several.map((audience, index) => [`audience-${index}`, audience])),
    };
  });

function flagOf(
  { flag, level, requires, inConditions, inAudiences }: Node,
  sorted: Node[],
): ResolvedState {
  const lower = sorted.filter((node) => node.level < level).length;
  const requirement = ({ target, is }: Link) => ({ flag: `flag-${target % lower}`, is });
  let rules = flag.targeting_rules;
  for (const link of lower === 0 ? [] : inConditions)
    rules = withCondition(rules, link.rule, requirement(link));
  for (const { target, rule } of inAudiences)
    rules = withCondition(rules, rule, { audience: `audience-${target % 4}` });
  return {
    ...{ ...flag, targeting_rules: rules },
    ...(lower === 0 || requires.length === 0 ? {} : { requires: requires.map(requirement) }),
  };
}

function withCondition(
  rules: readonly TargetingRule[],
  position: number,
  condition: TargetingRule["conditions"][number],
): readonly TargetingRule[] {
  return rules.map((rule, index) =>
    index === position % rules.length
      ? { ...rule, conditions: [...rule.conditions, condition] }
      : rule,
  );
}

/** Returns the project for the reference evaluator. */
export function projectOf({ flags: all, audiences: several }: Forest): Project {
  return createProject(
    new Map(all.map((flag) => [flag.key, flag])),
    new Map([...several].map(([name, { reference }]) => [name, reference])),
  );
}

/** Compiles all flags. Those that are not found are missing in `references`, whose maps grow in place as a reader's do. */
export function compileForest({ flags: all, audiences: several }: Forest) {
  const found = new Map<string, CompiledFlag>();
  const references = {
    audiences: new Map(
      [...several].map(([name, { audience, chunks }]) => [name, compileAudience(audience, chunks)]),
    ),
    flags: found,
  };
  const compiled = all.map((state) => {
    const flag = compile(state, references);
    if (findMissing(state, references) === undefined) found.set(state.key, flag);
    return flag;
  });
  return { compiled, references };
}
