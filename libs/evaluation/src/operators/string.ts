import { finderOf } from "../find-text.ts";
import { foldCase } from "../fold-case.ts";
import type { Elements } from "../subject.ts";
import type { OperatorOf } from "./catalogue.ts";
import { type Comparison, noObstacle } from "./operator.ts";
import { compileMatchesRegex } from "./regex.ts";

type Compile = (text: string) => Comparison | undefined;

export function compileString(
  operator: OperatorOf<"string">,
  text: string,
): Comparison | undefined {
  return compilers[operator](text);
}

const compilers: { readonly [operator in OperatorOf<"string">]: Compile } = {
  equals: ignoringCase((wanted) => ({ ...equalTo(wanted), equalTo: wanted })),
  not_equals: ignoringCase((wanted) => ({ ...equalTo(wanted), negated: true })),
  contains: ignoringCase(containing),
  not_contains: ignoringCase((wanted) => ({ ...containing(wanted), negated: true })),
  starts_with: ignoringCase(startingWith),
  ends_with: ignoringCase(endingWith),
  matches_regex: compileMatchesRegex,
};

function ignoringCase(compile: (wanted: string) => Comparison): Compile {
  return (text) => compile(foldCase(text));
}

function equalTo(wanted: string): Comparison {
  return ofTexts(
    ({ folded }) => folded === wanted,
    ({ texts }) => texts.has(wanted),
  );
}

function containing(wanted: string): Comparison {
  const isIn = finderOf(wanted);
  const holds: Comparison["holds"] = ({ folded }) => isIn(folded);
  return ofTexts(holds, findInArray(wanted, holds, isIn));
}

function startingWith(wanted: string): Comparison {
  const holds: Comparison["holds"] = ({ folded }) => folded.startsWith(wanted);
  return ofTexts(
    holds,
    findInArray(wanted, holds, (text, border) => finderOf(border + wanted)(text)),
  );
}

function endingWith(wanted: string): Comparison {
  const holds: Comparison["holds"] = ({ folded }) => folded.endsWith(wanted);
  return ofTexts(
    holds,
    findInArray(wanted, holds, (text, border) => finderOf(wanted + border)(text)),
  );
}

/** Searches the texts of an array in one joined text. A border separates them. */
function findInArray(
  wanted: string,
  holds: Comparison["holds"],
  find: (text: string, border: string) => boolean,
): Comparison["holdsForAny"] {
  return ({ isEmpty, subjects, joined }: Elements) => {
    if (isEmpty) return false;
    if (joined === undefined) return subjects.some(holds);
    return !wanted.includes(joined.border) && find(joined.text, joined.border);
  };
}

/** Creates a comparison without obstacles: every value of an attribute has a text. */
function ofTexts(holds: Comparison["holds"], holdsForAny: Comparison["holdsForAny"]): Comparison {
  return { holds, holdsForAny, negated: false, obstacle: noObstacle, obstacleForAll: noObstacle };
}
