import { isScalar, type Scalar } from "../attributes.ts";
import { foldCase } from "../fold-case.ts";
import { textOf } from "../subject.ts";
import { TextSet } from "../text-set.ts";
import type { OperatorOf } from "./catalogue.ts";
import { type Comparison, noObstacle } from "./operator.ts";

const isNegated: { readonly [operator in OperatorOf<"list">]: boolean } = {
  in: false,
  not_in: true,
};

/** Compiles `in` and `not_in`: equality with an item of a list, regardless of case unless `matchCase` is set. */
export function compileList(
  operator: OperatorOf<"list">,
  value: unknown,
  matchCase: boolean,
): Comparison | undefined {
  if (!isList(value)) return undefined;
  if (matchCase) return exactList(operator, value);
  const members = new TextSet(() => itemsOf(value).map(foldCase));
  return {
    holds: (subject) => members.has(subject),
    holdsForAny: (elements) => members.hasAnyOf(elements),
    negated: isNegated[operator],
    obstacle: noObstacle,
    obstacleForAll: noObstacle,
    members,
  };
}

function exactList(operator: OperatorOf<"list">, value: string | readonly Scalar[]): Comparison {
  const items = itemsOf(value);
  const members = new Set(items);
  return {
    holds: ({ text }) => members.has(text),
    // Iterates over the shorter one of array and list.
    holdsForAny: ({ subjects, exact }) =>
      subjects.length <= items.length
        ? subjects.some(({ text }) => members.has(text))
        : items.some((item) => exact.texts.has(item)),
    negated: isNegated[operator],
    obstacle: noObstacle,
    obstacleForAll: noObstacle,
  };
}

/** Returns the items of an array or of a comma-separated text; undefined if the value is neither. */
export function readList(value: unknown): readonly string[] | undefined {
  return isList(value) ? itemsOf(value) : undefined;
}

function itemsOf(value: string | readonly Scalar[]): readonly string[] {
  if (typeof value !== "string") return value.map(textOf);
  return value
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

function isList(value: unknown): value is string | readonly Scalar[] {
  return Array.isArray(value) ? value.every(isScalar) : typeof value === "string";
}
