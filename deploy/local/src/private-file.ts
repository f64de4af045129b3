import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { hasCode } from "@halyard/local-backends";

/** Readable for its owner only, and never seen half written: it appears by being renamed. */
export function writePrivateFile(path: string, content: string): void {
  const unfinished = `${path}.${process.pid}.new`;
  writeFileSync(unfinished, content, { mode: 0o600 });
  renameSync(unfinished, path);
}

export function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}
