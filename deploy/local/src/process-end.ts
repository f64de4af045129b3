import { type ExitStatus, readLogTail } from "@halyard/local-backends";

const shownLines = 12;

/** Lines that are read. More than are shown, because most stack frames are left out. */
const searchedLines = 100;

/** Maximum number of stack frames shown of an error: a syntax error has ten, all of them of Node.js itself. */
const maxFrames = 3;

/** Returns how a process ended and the end of its log, for people. */
export function describeDeath(name: string, status: ExitStatus, logFile: string): string {
  return `${name} ended ${describeExit(status)}. The end of its log (${logFile}):${endOfLog(logFile)}`;
}

export function describeExit(status: ExitStatus): string {
  return status.signal === null ? `with exit code ${status.code}` : `by ${status.signal}`;
}

/** Returns the last lines of a log for people, indented, with few frames of a stack each. */
export function endOfLog(logFile: string): string {
  let frames = 0;
  const lines = readLogTail(logFile, searchedLines).filter((line) => {
    frames = /^\s+at /.test(line) ? frames + 1 : 0;
    return frames <= maxFrames;
  });
  return lines
    .slice(-shownLines)
    .map((line) => `\n  ${line}`)
    .join("");
}
