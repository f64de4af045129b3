import { renameSync, writeFileSync } from "node:fs";

/** Readable for its owner only, and never seen half written: it appears by being renamed. */
export function writePrivateFile(path: string, content: unknown): void {
  const unfinished = `${path}.${process.pid}.new`;
  writeFileSync(unfinished, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  renameSync(unfinished, path);
}
