import { type ExitStatus, readLogTail } from "@halyard/local-backends";

const shownLines = 12;

/** Maximum number of lines read from the log. Fewer are shown, because most stack frames are omitted. */
const searchedLines = 100;

/** Maximum number of stack frames shown per error. A syntax error has ten, all of them in Node.js. */
const maxFrames = 3;

/** Describes how a process ended, with the end of its log. */
export function describeDeath(name: string, status: ExitStatus, logFile: string): string {
  return `${name} ended ${describeExit(status)}. The end of its log (${logFile}):${endOfLog(logFile)}`;
}

function describeExit(status: ExitStatus): string {
  return status.signal === null ? `with exit code ${status.code}` : `by ${status.signal}`;
}

/** Returns the last lines of a log, indented, with few frames of each stack. */
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
