import { closeSync, fstatSync, openSync, readFileSync, readSync, renameSync } from "node:fs";

/** Number of bytes that are read for the last few lines of a log. */
const tailBytes = 16 * 1024;

/** Returns whether an error has one of these codes. Avoids `instanceof`, because jest runs tests in another realm. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  if (typeof error !== "object" || error === null || !("code" in error)) return false;
  return codes.includes(String(error.code));
}

export function readIfPresent(path: string): string | undefined {
  return unlessAbsent(() => readFileSync(path, "utf8"));
}

/** Returns the result of the work; undefined if a file or directory that it reads does not exist. */
export function unlessAbsent<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
}

/** Moves a finished directory to its place, unless another process has put the same there in the meantime. */
export function renameUnlessPresent(finished: string, directory: string): void {
  try {
    renameSync(finished, directory);
  } catch (error) {
    if (!hasCode(error, "ENOTEMPTY", "EEXIST")) throw error;
  }
}

/** Returns the last non-empty lines of a log file; none if the file does not exist. */
export function readLogTail(logFile: string, lineCount: number): string[] {
  const file = unlessAbsent(() => openSync(logFile, "r"));
  if (file === undefined) return [];
  try {
    const sizeBytes = fstatSync(file).size;
    const start = Math.max(0, sizeBytes - tailBytes);
    const buffer = Buffer.alloc(sizeBytes - start);
    readSync(file, buffer, 0, buffer.length, start);
    return linesIn(buffer.toString("utf8")).slice(-lineCount);
  } finally {
    closeSync(file);
  }
}

/** Returns the last line that a failed program wrote to its error output. */
export function lastErrorLine(failure: unknown): string {
  const hasOutput = typeof failure === "object" && failure !== null && "stderr" in failure;
  return (hasOutput ? linesIn(String(failure.stderr)).at(-1) : undefined) ?? String(failure);
}

function linesIn(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}
