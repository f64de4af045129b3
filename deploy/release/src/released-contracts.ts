import { createHash } from "node:crypto";
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Folder with the contracts of every release. Tests compare the current contracts with them. */
export const releasedFolder = "libs/contracts/released";

/**
 * Stores the contracts that later versions must stay compatible with: the JSON Schemas of messages and snapshot
 * entries, and the checksums of the migrations. Migrations never change after a release, because databases have applied
 * them.
 */
export function keepReleasedContracts(root: string, version: string): void {
  const folder = join(root, releasedFolder, version);
  mkdirSync(folder, { recursive: true });
  cpSync(join(root, "docs/schemas"), folder, { recursive: true });
  const checksums = migrationChecksums(root);
  writeFileSync(join(folder, "migrations.json"), `${JSON.stringify(checksums, null, 2)}\n`);
}

function migrationChecksums(root: string): Record<string, string> {
  const paths = globSync("services/*/migrations/*.sql", { cwd: root }).toSorted();
  return Object.fromEntries(paths.map((path) => [path, sha256(readFileSync(join(root, path)))]));
}

function sha256(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}
