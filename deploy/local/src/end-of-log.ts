import { readLogTail } from "@halyard/local-backends";

const SHOWN_LINES = 12;

/** Lines that are read. More than are shown, because most stack frames are left out. */
const SEARCHED_LINES = 100;

/** Maximum number of stack frames shown of an error: a syntax error has ten, all of them of Node.js itself. */
const MAX_FRAMES = 3;

/** Returns the last lines of a log for people, indented. */
export function endOfLog(logFile: string): string {
  const lines = withoutLongStacks(readLogTail(logFile, SEARCHED_LINES)).slice(-SHOWN_LINES);
  return lines.map((line) => `\n  ${line}`).join("");
}

/** Leaves out frames that would push the error itself out of the lines that are shown. */
function withoutLongStacks(lines: string[]): string[] {
  let frames = 0;
  return lines.filter((line) => {
    frames = /^\s+at /.test(line) ? frames + 1 : 0;
    return frames <= MAX_FRAMES;
  });
}
