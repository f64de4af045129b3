import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "@jest/globals";

const directories: string[] = [];

afterAll(() => {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
});

/** Creates a directory that is removed after the tests of the file. */
export function throwawayDirectory(mode: 0o700 | 0o755 | 0o777 = 0o755): string {
  const directory = mkdtempSync(join(tmpdir(), "halyard-test-"));
  chmodSync(directory, mode);
  directories.push(directory);
  return directory;
}
