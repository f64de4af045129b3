import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { findCircles } from "./folder-circles.ts";

/**
 * Fails if folders of one workspace import each other in a circle, because none of them can then be read or changed
 * without the others. The argument is the root of a repository; the default is this one.
 */
const [root = join(import.meta.dirname, "../../..")] = process.argv.slice(2);

const workspaces = ["libs", "services", "deploy", "clients"]
  .filter((parent) => existsSync(join(root, parent)))
  .flatMap((parent) => readdirSync(join(root, parent)).map((name) => `${parent}/${name}`))
  .filter((workspace) => existsSync(join(root, workspace, "src")));

for (const workspace of workspaces)
  for (const { folders, imports } of findCircles(join(root, workspace, "src"))) {
    console.error(`${workspace}: folders import each other in a circle: ${folders.join(", ")}`);
    for (const line of imports) console.error(`  ${line}`);
    process.exitCode = 1;
  }
