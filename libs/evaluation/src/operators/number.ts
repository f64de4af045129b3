import type { Scalar } from "../attributes.ts";
import { type Elements, instantOf, numberOf, type Range, type Subject } from "../subject.ts";
import type { OperatorOf } from "./catalogue.ts";
import { type Comparison, type Obstacle, obstacleOfFirst } from "./operator.ts";

/**
 * Compiles `gt`, `gte`, `lt` and `lte`. Numbers are compared with numbers, instants with instants. A value that is
 * neither is NaN, for which all four comparisons are false.
 */
export function compileNumber(
  operator: OperatorOf<"number">,
  value: Scalar,
): Comparison | undefined {
  const number = numberOf(value);
  if (!Number.isNaN(number)) return compare(operator, number, numbers);
  const instant = instantOf(value);
  return Number.isNaN(instant) ? undefined : compare(operator, instant, instants);
}

type Measure = {
  readonly of: (subject: Subject) => number;
  readonly ofAll: (elements: Elements) => Range;
};

const numbers: Measure = { of: ({ number }) => number, ofAll: (elements) => elements.numbers };
const instants: Measure = { of: ({ instant }) => instant, ofAll: (elements) => elements.instants };

type Order = {
  readonly holds: (value: number, limit: number) => boolean;
  /** The extreme element of an array: if the comparison holds for any element, it holds for this one. */
  readonly extreme: keyof Range;
};

const orders: { readonly [operator in OperatorOf<"number">]: Order } = {
  gt: { holds: (value, limit) => value > limit, extreme: "largest" },
  gte: { holds: (value, limit) => value >= limit, extreme: "largest" },
  lt: { holds: (value, limit) => value < limit, extreme: "smallest" },
  lte: { holds: (value, limit) => value <= limit, extreme: "smallest" },
};

function compare(operator: OperatorOf<"number">, limit: number, measure: Measure): Comparison {
  const { holds, extreme } = orders[operator];
  const obstacle = (subject: Subject): Obstacle | undefined => {
    if (typeof subject.value === "boolean") return "wrong_type";
    return Number.isNaN(measure.of(subject)) ? "not_comparable" : undefined;
  };
  return {
    holds: (subject) => holds(measure.of(subject), limit),
    holdsForAny: (elements) => holds(measure.ofAll(elements)[extreme], limit),
    negated: false,
    obstacle,
    obstacleForAll: (elements) =>
      Number.isFinite(measure.ofAll(elements).largest)
        ? undefined
        : obstacleOfFirst(elements, obstacle),
  };
}
