/**
 * Computes the length of the shortest text that an expression could match, in UTF-16 code units; `Infinity` if no text
 * can match. The instructions of a program form a graph, which is searched by increasing length. Unsatisfiable
 * assertions about the start and end of the text, and contradictory word boundaries at one position, are dead ends.
 * Other assertions count as satisfied, so the true length can be larger.
 */
export function shortestMatch({ inst, start }: Program): number {
  const byLength: State[][] = [[{ at: start, facts: 0 }]];
  const seen = new Set<number>();
  for (let length = 0; length < byLength.length; length++) {
    const open = byLength[length] ?? [];
    for (let state = open.pop(); state !== undefined; state = open.pop()) {
      const { at, facts } = state;
      const instruction = inst[at];
      const id = at * factsEnd + facts;
      if (seen.has(id) || instruction === undefined || instruction.op === operation.fail) continue;
      seen.add(id);
      const { op, out, arg } = instruction;
      if (op === operation.match) return length;
      const factsThere = factsAfter(instruction, facts);
      if (factsThere === undefined) continue;
      const next = length + codeUnits(instruction);
      byLength[next] ??= [];
      byLength[next].push({ at: out, facts: factsThere });
      if (op === operation.alternative || op === operation.alternativeMatch)
        open.push({ at: arg, facts });
    }
  }
  return Number.POSITIVE_INFINITY;
}

/** The next instruction, and the facts about the position before it as bits. */
type State = { at: number; facts: number };

/** Bits of `facts`. All except `afterCharacter` are the library's numbers of assertions. */
const afterCharacter = 1;
const assertion = { startOfText: 4, endOfText: 8, wordBoundary: 16, noWordBoundary: 32 };
const contradiction = assertion.wordBoundary | assertion.noWordBoundary;
const remembered = assertion.endOfText | contradiction;
const factsEnd = 64;

/** Returns the facts after an instruction, or undefined if the instruction contradicts the facts. */
function factsAfter(instruction: Instruction, facts: number): number | undefined {
  if (codeUnits(instruction) > 0)
    return (facts & assertion.endOfText) === 0 ? afterCharacter : undefined;
  if (instruction.op !== operation.assertion) return facts;
  const { arg } = instruction;
  if ((arg & assertion.startOfText) !== 0 && (facts & afterCharacter) !== 0) return undefined;
  const there = facts | (arg & remembered);
  return (there & contradiction) === contradiction ? undefined : there;
}

export type Program = { start: number; inst: readonly Instruction[] };

/** `runes` contains the characters of a class as ascending ranges, or one character. */
type Instruction = { op: number; out: number; arg: number; runes: ArrayLike<number> };

/** The library's numbers of operations, which its documentation does not list. */
const operation = {
  alternative: 1,
  alternativeMatch: 2,
  assertion: 4,
  fail: 5,
  match: 6,
  firstCharacter: 8,
  lastCharacter: 11,
};

const lastOfOneUnit = 0xffff;

function codeUnits({ op, runes }: Instruction): number {
  if (op < operation.firstCharacter || op > operation.lastCharacter) return 0;
  return (runes[0] ?? 0) > lastOfOneUnit ? 2 : 1;
}
