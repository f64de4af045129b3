import type { Elements, Range } from "../elements.ts";
import type { Scalar } from "../flag-state.ts";
import type { OperatorName } from "../operator-names.ts";
import { instantOf, numberOf, type Subject } from "../subject.ts";
import type { Comparison, Obstacle } from "./operator.ts";

/**
 * `gt` to `lte`: numbers with numbers, instants with instants. What is neither is NaN, and comparing with
 * NaN is false in all four ways.
 */
export function compileNumber(operator: OperatorName, value: Scalar): Comparison | undefined {
  const number = numberOf(value);
  if (!Number.isNaN(number)) {
    return comparison(numberComparisons[operator]?.(number), numbers);
  }
  const instant = instantOf(value);
  if (Number.isNaN(instant)) return undefined;
  return comparison(instantComparisons[operator]?.(instant), instants);
}

type Measure = {
  readonly of: (subject: Subject) => number;
  readonly ofAll: (elements: Elements) => Range;
};

const numbers: Measure = { of: ({ number }) => number, ofAll: (elements) => elements.numbers };
const instants: Measure = { of: ({ instant }) => instant, ofAll: (elements) => elements.instants };

type Holds = Pick<Comparison, "holds" | "holdsForAny">;
type Comparisons = { readonly [operator in OperatorName]?: (limit: number) => Holds };

const numberComparisons: Comparisons = {
  gt: (limit) => ({
    holds: ({ number }) => number > limit,
    holdsForAny: ({ numbers }) => numbers.largest > limit,
  }),
  gte: (limit) => ({
    holds: ({ number }) => number >= limit,
    holdsForAny: ({ numbers }) => numbers.largest >= limit,
  }),
  lt: (limit) => ({
    holds: ({ number }) => number < limit,
    holdsForAny: ({ numbers }) => numbers.smallest < limit,
  }),
  lte: (limit) => ({
    holds: ({ number }) => number <= limit,
    holdsForAny: ({ numbers }) => numbers.smallest <= limit,
  }),
};

const instantComparisons: Comparisons = {
  gt: (limit) => ({
    holds: ({ instant }) => instant > limit,
    holdsForAny: ({ instants }) => instants.largest > limit,
  }),
  gte: (limit) => ({
    holds: ({ instant }) => instant >= limit,
    holdsForAny: ({ instants }) => instants.largest >= limit,
  }),
  lt: (limit) => ({
    holds: ({ instant }) => instant < limit,
    holdsForAny: ({ instants }) => instants.smallest < limit,
  }),
  lte: (limit) => ({
    holds: ({ instant }) => instant <= limit,
    holdsForAny: ({ instants }) => instants.smallest <= limit,
  }),
};

function comparison(holds: Holds | undefined, measure: Measure): Comparison | undefined {
  if (holds === undefined) return undefined;
  const obstacle = (subject: Subject): Obstacle | undefined => {
    if (typeof subject.value === "boolean") return "wrong_type";
    return Number.isNaN(measure.of(subject)) ? "not_comparable" : undefined;
  };
  return {
    ...holds,
    negated: false,
    obstacle,
    obstacleForAll: (elements) =>
      Number.isFinite(measure.ofAll(elements).largest)
        ? undefined
        : elements.firstObstacle(obstacle),
  };
}
