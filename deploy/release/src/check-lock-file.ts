import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Fails if a package in package-lock.json has no integrity hash, because npm installs such a package without checking
 * its content. npm omits the hash when it writes the file from an existing `node_modules`.
 */
type Locked = { link?: boolean; integrity?: string };

const file = join(import.meta.dirname, "../../../package-lock.json");
const { packages } = JSON.parse(readFileSync(file, "utf8")) as { packages: Record<string, Locked> };
const unchecked = Object.entries(packages)
  .filter(([path, { link, integrity }]) => path.includes("node_modules/") && !link && !integrity)
  .map(([path]) => path);

if (unchecked.length > 0) {
  console.error(`package-lock.json has no integrity for ${unchecked.length} packages:`);
  for (const path of unchecked) console.error(`  ${path}`);
  console.error(
    "Remove node_modules and package-lock.json, run `npm install`, and review the changed versions.",
  );
  process.exitCode = 1;
}
