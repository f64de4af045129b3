import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { findCircles } from "./folder-circles.ts";
import { findFolderDisorder, findLibraryDisorder } from "./import-order.ts";

/**
 * Fails if folders of one workspace import each other in a circle, because none of them can then be read or changed
 * without the others, and if an import contradicts the order that a README or the architecture page declares. The
 * argument is the root of a repository; the default is this one.
 */
const [root = join(import.meta.dirname, "../../..")] = process.argv.slice(2);

function fail(where: string, problems: readonly string[]): void {
  for (const problem of problems) {
    console.error(`${where}: ${problem}`);
    process.exitCode = 1;
  }
}

const workspaces = ["libs", "services", "deploy", "clients"]
  .filter((parent) => existsSync(join(root, parent)))
  .flatMap((parent) => readdirSync(join(root, parent)).map((name) => `${parent}/${name}`))
  .filter((workspace) => existsSync(join(root, workspace, "src")));

for (const workspace of workspaces) {
  for (const { folders, imports } of findCircles(join(root, workspace, "src"))) {
    fail(workspace, [`folders import each other in a circle: ${folders.join(", ")}`]);
    for (const line of imports) console.error(`  ${line}`);
  }
  if (existsSync(join(root, workspace, "README.md")))
    fail(workspace, findFolderDisorder(join(root, workspace)));
}
if (existsSync(join(root, "libs"))) fail("docs/architecture.md", findLibraryDisorder(root));
