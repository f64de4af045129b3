import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Bench } from "../benchmark.ts";
import { cacheDir, projectRoot } from "../project-root.ts";

export type ServerSdk = typeof import("@halyard/server-sdk");

/**
 * Builds the server SDK by `npm pack`, as applications get it, and unpacks it. Returns the URL of its module. The folder
 * is inside the project, where Node.js finds the dependencies of the package.
 */
export function installServerSdk(bench: Bench): string {
  mkdirSync(cacheDir, { recursive: true });
  const folder = mkdtempSync(join(cacheDir, "sdk-"));
  bench.afterwards(async () => rmSync(folder, { recursive: true, force: true }));
  bench.say("packing the server SDK");
  for (const name of ["evaluation", "server-sdk"]) {
    execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], {
      cwd: join(projectRoot, "clients", name),
      // Without the settings of `npm run`, such as the folder of its project. The report is on standard output.
      env: { PATH: process.env.PATH, HOME: process.env.HOME },
      stdio: ["ignore", "ignore", "inherit"],
    });
    const installed = join(folder, "node_modules/@halyard", name);
    mkdirSync(installed, { recursive: true });
    execFileSync(
      "sh",
      ["-c", `tar -xzf halyard-${name}-*.tgz --strip-components=1 -C "$0"`, installed],
      { cwd: folder },
    );
  }
  return pathToFileURL(join(folder, "node_modules/@halyard/server-sdk/dist/index.js")).href;
}
