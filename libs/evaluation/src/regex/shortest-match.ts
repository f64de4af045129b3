/**
 * Computes the length of the shortest text that an expression could match, in UTF-16 code units; `Infinity`
 * when no text can match. Assertions such as `^` count as fulfilled, so the true length can be larger. The
 * instructions of a program form a graph, which is searched by increasing length.
 */
export function shortestMatch({ inst, start }: Program): number {
  const byLength: number[][] = [[start]];
  const seen = new Set<number>();
  for (let length = 0; length < byLength.length; length++) {
    const open = byLength[length] ?? [];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      const instruction = inst[at];
      if (seen.has(at) || instruction === undefined || instruction.op === operation.fail) continue;
      seen.add(at);
      const { op, out, arg } = instruction;
      if (op === operation.match) return length;
      const next = length + codeUnits(instruction);
      byLength[next] ??= [];
      byLength[next].push(out);
      if (op === operation.alternative || op === operation.alternativeMatch) open.push(arg);
    }
  }
  return Number.POSITIVE_INFINITY;
}

export type Program = { start: number; inst: readonly Instruction[] };

/** `runes`: the characters of a class as ranges in ascending order, or one character. */
type Instruction = { op: number; out: number; arg: number; runes: ArrayLike<number> };

/** The library's numbers, which its documentation does not list. */
const operation = {
  alternative: 1,
  alternativeMatch: 2,
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
