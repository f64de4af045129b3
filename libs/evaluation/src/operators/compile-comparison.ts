import { isScalar } from "../attributes.ts";
import { textOf } from "../subject.ts";
import { canMatchCase, isOfCategory, type OperatorName } from "./catalogue.ts";
import { compileList } from "./list.ts";
import { compileNumber } from "./number.ts";
import type { Comparison } from "./operator.ts";
import { compileSemver } from "./semver.ts";
import { compileString } from "./string.ts";

/**
 * Compiles an operator with its value. Returns undefined for an unknown operator, an unsupported value, or `match_case`
 * with an operator that does not compare texts.
 */
export function compileComparison(
  operator: OperatorName,
  value: unknown,
  matchCase: boolean,
): Comparison | undefined {
  if (matchCase && !canMatchCase(operator)) return undefined;
  if (isOfCategory(operator, "list")) return compileList(operator, value, matchCase);
  if (!isScalar(value)) return undefined;
  if (isOfCategory(operator, "number")) return compileNumber(operator, value);
  if (isOfCategory(operator, "semver")) return compileSemver(operator, value);
  if (isOfCategory(operator, "string")) return compileString(operator, textOf(value), matchCase);
  // Every category is handled above, so the operator is unknown.
  operator satisfies never;
  return undefined;
}
