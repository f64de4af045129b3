import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { hasCode } from "./process-identity.ts";

/** Enough for the last few lines of any log, however long the log has become. */
const TAIL_BYTES = 16 * 1024;

/** The last lines of a log file; none when there is no such file. */
export function readLogTail(logFile: string, lineCount: number): string[] {
  let file: number;
  try {
    file = openSync(logFile, "r");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
  try {
    const sizeBytes = fstatSync(file).size;
    const start = Math.max(0, sizeBytes - TAIL_BYTES);
    const buffer = Buffer.alloc(sizeBytes - start);
    readSync(file, buffer, 0, buffer.length, start);
    const lines = buffer.toString("utf8").split("\n");
    return lines.filter((line) => line.trim() !== "").slice(-lineCount);
  } finally {
    closeSync(file);
  }
}

/** What a failed program wrote to its error output, the last line that says anything. */
export function lastErrorLine(failure: unknown): string {
  if (typeof failure !== "object" || failure === null || !("stderr" in failure))
    return String(failure);
  const lines = String(failure.stderr).split("\n");
  return lines.filter((line) => line.trim() !== "").at(-1) ?? String(failure);
}
