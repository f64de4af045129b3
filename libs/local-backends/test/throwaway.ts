import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "@jest/globals";

/**
 * Returns a function that creates directories, which are removed after the tests of the calling file. Each file calls
 * this, because the files of a worker share this module: a hook at its top would only run for the first file.
 */
export function throwawayDirectories(): (mode?: 0o700 | 0o755 | 0o777) => string {
  const directories: string[] = [];
  afterAll(() => {
    for (const directory of directories) rmSync(directory, { recursive: true, force: true });
  });
  return (mode = 0o755) => {
    const directory = mkdtempSync(join(tmpdir(), "halyard-test-"));
    chmodSync(directory, mode);
    directories.push(directory);
    return directory;
  };
}
