import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { cacheDir, projectRoot } from "../project-root.ts";

const folders = ["libs", "services", "node_modules/@halyard"];
/** Loads the sources of `stripSources`. */
export const loadStripped = ["--import", join(projectRoot, "deploy/docker/load-stripped.mjs")];

/**
 * Copies the services without types, as in the images, and returns the new folder. It is inside the project, where
 * Node.js finds the packages. The caller removes it.
 */
export function stripSources(): string {
  mkdirSync(cacheDir, { recursive: true });
  const root = mkdtempSync(join(cacheDir, "stripped-"));
  for (const folder of folders)
    cpSync(join(projectRoot, folder), join(root, folder), {
      recursive: true,
      verbatimSymlinks: true,
    });
  const program = join(projectRoot, "deploy/docker/strip-types.mjs");
  execFileSync(process.execPath, ["--disable-warning=ExperimentalWarning", program, root]);
  return root;
}
