import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { findCircles, readFolderImports } from "./folder-circles.ts";

/**
 * Fails when folders of one workspace of the product import each other in a circle, because none of them can then
 * be read or changed without the others. The argument is the root of a repository; by default it is this one.
 */
const [root = join(import.meta.dirname, "../../..")] = process.argv.slice(2);

/** Imports that close circles and are allowed for now. An entry that closes none is an error as well. */
const allowedImports: Readonly<Record<string, readonly (readonly [from: string, to: string])[]>> = {
  "deploy/local": [["home.ts", "credentials.ts"]],
  "libs/evaluation": [["flag-state.ts", "operators"]],
  "services/usage-metering": [["usage-metrics.ts", "counting"]],
};

const workspaces = ["libs", "services", "deploy", "clients"]
  .filter((parent) => existsSync(join(root, parent)))
  .flatMap((parent) => readdirSync(join(root, parent)).map((name) => `${parent}/${name}`))
  .filter((workspace) => existsSync(join(root, workspace, "src")));

for (const workspace of workspaces) {
  const imports = readFolderImports(join(root, workspace, "src"));
  for (const [from, to] of allowedImports[workspace] ?? []) {
    const closesCircle = findCircles(imports).some(
      ({ folders }) => folders.includes(from) && folders.includes(to),
    );
    if (!closesCircle || !imports.get(from)?.delete(to))
      fail(`${workspace}: "${from}" imports "${to}" in no circle; remove it from the exceptions`);
  }
  for (const circle of findCircles(imports))
    fail(
      [
        `${workspace}: folders import each other in a circle: ${circle.folders.join(", ")}`,
        ...circle.imports,
      ].join("\n  "),
    );
}

function fail(problem: string): void {
  console.error(problem);
  process.exitCode = 1;
}
