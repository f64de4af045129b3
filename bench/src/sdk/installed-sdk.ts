import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Bench } from "../benchmark.ts";
import { cacheDir, projectRoot } from "../project-root.ts";

export type ServerSdk = typeof import("@halyard/server-sdk");

/**
 * Packs the server SDK, as applications get it, and unpacks it. Returns the URL of its module. The folder is inside the
 * project, where Node.js finds the dependencies of the package.
 */
export function installServerSdk(bench: Bench): string {
  mkdirSync(cacheDir, { recursive: true });
  const folder = mkdtempSync(join(cacheDir, "sdk-"));
  bench.afterwards(async () => rmSync(folder, { recursive: true, force: true }));
  bench.say("packing the server SDK");
  execFileSync(process.execPath, ["deploy/release/src/pack-clients.ts", folder], {
    cwd: projectRoot,
    // The report is on standard output.
    stdio: ["ignore", "ignore", "inherit"],
  });
  for (const name of ["evaluation", "server-sdk"]) {
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
