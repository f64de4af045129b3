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

/** Compiles `in` and `not_in`: equality, regardless of case, with an item of a list. */
export function compileList(operator: OperatorOf<"list">, value: unknown): Comparison | undefined {
  if (!isList(value)) return undefined;
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
