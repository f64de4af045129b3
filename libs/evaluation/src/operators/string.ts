import { finderOf } from "../find-text.ts";
import { foldCase } from "../fold-case.ts";
import type { Elements, Subject, Texts } from "../subject.ts";
import type { OperatorOf } from "./catalogue.ts";
import { type Comparison, noObstacle } from "./operator.ts";
import { compileMatchesRegex } from "./regex.ts";

/** Compiles an operator of texts. Case is ignored unless `matchCase` is set. */
export function compileString(
  operator: OperatorOf<"string">,
  text: string,
  matchCase: boolean,
): Comparison | undefined {
  if (operator === "matches_regex") return compileMatchesRegex(text);
  const compile = compilers[operator];
  return matchCase ? compile(exact, text) : compile(folded, foldCase(text));
}

/** A form of texts in which they are compared. */
type Form = {
  readonly isFolded: boolean;
  readonly of: (subject: Subject) => string;
  readonly ofAll: (elements: Elements) => Texts;
};

const folded: Form = {
  isFolded: true,
  of: (subject) => subject.folded,
  ofAll: (elements) => elements.folded,
};
const exact: Form = {
  isFolded: false,
  of: (subject) => subject.text,
  ofAll: (elements) => elements.exact,
};

/** Compiles the comparison with a text in the same form. */
type Compile = (form: Form, wanted: string) => Comparison;

const compilers: {
  readonly [operator in Exclude<OperatorOf<"string">, "matches_regex">]: Compile;
} = {
  equals: (form, wanted) => ({
    ...equalTo(form, wanted),
    ...(form.isFolded ? { equalTo: wanted } : {}),
  }),
  not_equals: (form, wanted) => ({ ...equalTo(form, wanted), negated: true }),
  contains: containing,
  not_contains: (form, wanted) => ({ ...containing(form, wanted), negated: true }),
  starts_with: startingWith,
  ends_with: endingWith,
};

function equalTo({ of, ofAll }: Form, wanted: string): Comparison {
  return ofTexts(
    (subject) => of(subject) === wanted,
    (elements) => ofAll(elements).texts.has(wanted),
  );
}

function containing(form: Form, wanted: string): Comparison {
  const isIn = finderOf(wanted);
  const { of } = form;
  const holds: Comparison["holds"] = (subject) => isIn(of(subject));
  return ofTexts(holds, findInArray(form, wanted, holds, isIn));
}

function startingWith(form: Form, wanted: string): Comparison {
  const { of } = form;
  const holds: Comparison["holds"] = (subject) => of(subject).startsWith(wanted);
  return ofTexts(
    holds,
    findInArray(form, wanted, holds, (text, border) => finderOf(border + wanted)(text)),
  );
}

function endingWith(form: Form, wanted: string): Comparison {
  const { of } = form;
  const holds: Comparison["holds"] = (subject) => of(subject).endsWith(wanted);
  return ofTexts(
    holds,
    findInArray(form, wanted, holds, (text, border) => finderOf(wanted + border)(text)),
  );
}

/** Searches the texts of an array in one joined text. A border separates them. */
function findInArray(
  { ofAll }: Form,
  wanted: string,
  holds: Comparison["holds"],
  find: (text: string, border: string) => boolean,
): Comparison["holdsForAny"] {
  return (elements) => {
    if (elements.isEmpty) return false;
    const { joined } = ofAll(elements);
    if (joined === undefined) return elements.subjects.some(holds);
    return !wanted.includes(joined.border) && find(joined.text, joined.border);
  };
}

/** Creates a comparison without obstacles: every value of an attribute has a text. */
function ofTexts(holds: Comparison["holds"], holdsForAny: Comparison["holdsForAny"]): Comparison {
  return { holds, holdsForAny, negated: false, obstacle: noObstacle, obstacleForAll: noObstacle };
}
