import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { replaceVersions, versionLocations, versionsIn } from "./version-locations.ts";

/** The versions that a file names. The list is empty if it names none, or if the pattern matches no file. */
export type VersionMention = { path: string; versions: readonly string[] };

type Manifest = { version: string; workspaces: string[] };

export function readManifest(root: string): Manifest {
  return JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;
}

export function findMentions(root: string): VersionMention[] {
  return versionLocations(readManifest(root).workspaces).flatMap((location) =>
    location.files.flatMap((pattern) => {
      const paths = pathsOf(root, pattern);
      if (paths.length === 0) return [{ path: pattern, versions: [] }];
      return paths.map((path) => ({ path, versions: versionsIn(read(root, path), location) }));
    }),
  );
}

export function setVersion(root: string, version: string): void {
  for (const location of versionLocations(readManifest(root).workspaces))
    for (const path of location.files.flatMap((pattern) => pathsOf(root, pattern)))
      writeFileSync(join(root, path), replaceVersions(read(root, path), location, version));
}

function pathsOf(root: string, pattern: string): string[] {
  return globSync(pattern, { cwd: root }).toSorted();
}

function read(root: string, path: string): string {
  return readFileSync(join(root, path), "utf8");
}
