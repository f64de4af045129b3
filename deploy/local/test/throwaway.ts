import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "@jest/globals";

/** Directory of PostgreSQL's data for homes that only root can read. */
const REACHABLE_DIRECTORY = "/var/lib/halyard";

/**
 * Returns a function that creates directories, which are removed after the tests of the calling file, together with
 * their data in `/var/lib/halyard`. Each file calls this, because the files of a worker share this module: a hook at
 * its top would only run for the first file.
 */
export function throwawayDirectories(): (mode?: 0o700 | 0o755 | 0o777) => string {
  const directories: string[] = [];
  afterAll(() => {
    for (const directory of directories) {
      rmSync(directory, { recursive: true, force: true });
      removeDataElsewhere(directory);
    }
  });
  return (mode = 0o755) => {
    const directory = mkdtempSync(join(tmpdir(), "halyard-test-"));
    chmodSync(directory, mode);
    directories.push(directory);
    return directory;
  };
}

function removeDataElsewhere(directory: string): void {
  if (process.getuid?.() !== 0 || !existsSync(REACHABLE_DIRECTORY)) return;
  for (const file of readdirSync(REACHABLE_DIRECTORY)) {
    if (!file.endsWith(".json")) continue;
    const record = join(REACHABLE_DIRECTORY, file);
    if (!readFileSync(record, "utf8").includes(`"${directory}/`)) continue;
    rmSync(record.replace(/\.json$/, ""), { recursive: true, force: true });
    rmSync(record);
  }
}
