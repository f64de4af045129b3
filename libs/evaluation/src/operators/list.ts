import { isScalar } from "../attributes.ts";
import { foldCase } from "../fold-case.ts";
import { textOf } from "../subject.ts";
import { TextSet } from "../text-set.ts";
import type { OperatorOf } from "./catalogue.ts";
import { type Comparison, noObstacle } from "./operator.ts";

const isNegated: { readonly [operator in OperatorOf<"list">]: boolean } = {
  in: false,
  not_in: true,
};

/** `in` and `not_in`: equality, regardless of case, with one of a list. */
export function compileList(operator: OperatorOf<"list">, value: unknown): Comparison | undefined {
  const items = readList(value);
  if (items === undefined) return undefined;
  const members = new TextSet(items.map(foldCase));
  return {
    holds: (subject) => members.has(subject),
    holdsForAny: (elements) => members.hasAnyOf(elements),
    negated: isNegated[operator],
    obstacle: noObstacle,
    obstacleForAll: noObstacle,
    members,
  };
}

/** An array as it stands, or what stands between the commas of a text. Undefined when it is neither. */
export function readList(value: unknown): readonly string[] | undefined {
  if (Array.isArray(value)) return value.every(isScalar) ? value.map(textOf) : undefined;
  if (typeof value !== "string") return undefined;
  return value
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}
