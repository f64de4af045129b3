import { renameSync, writeFileSync } from "node:fs";

/** Writes a file that only its owner can read. The rename makes it appear complete. */
export function writePrivateFile(path: string, content: unknown): void {
  const unfinished = `${path}.${process.pid}.new`;
  writeFileSync(unfinished, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  renameSync(unfinished, path);
}
