import { isScalar } from "../attributes.ts";
import { textOf } from "../subject.ts";
import { categoryOf, type OperatorName } from "./catalogue.ts";
import { compileList } from "./list.ts";
import { compileNumber } from "./number.ts";
import type { Comparison } from "./operator.ts";
import { compileMatchesRegex } from "./regex.ts";
import { compileSemver } from "./semver.ts";
import { compileString } from "./string.ts";

/** Undefined when there is no such operator or the value is none that it can compare with. */
export function compileComparison(operator: OperatorName, value: unknown): Comparison | undefined {
  const category = categoryOf(operator);
  if (category === undefined) return undefined;
  if (category === "list") return compileList(operator === "not_in", value);
  if (!isScalar(value)) return undefined;
  if (category === "number") return compileNumber(operator, value);
  if (category === "semver") return compileSemver(operator, value);
  if (operator === "matches_regex") return compileMatchesRegex(textOf(value));
  return compileString(operator, textOf(value));
}
