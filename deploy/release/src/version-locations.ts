import { join } from "node:path/posix";

/** The package of `libs/evaluation`. It is no workspace, because two workspaces cannot have one name. */
const packageOfEvaluation = "clients/evaluation";

/** Files that name the version, as glob patterns from the root, and the text in front of the version. */
type VersionLocation = { files: readonly string[]; before: RegExp };

/**
 * Returns the locations of the version number. `npm run release` sets the version in all of them. It fails if a pattern
 * matches no file, or if a file does not contain the current version. Generated files are absent, because they read the
 * version from package.json.
 */
export function versionLocations(workspaces: readonly string[]): readonly VersionLocation[] {
  const manifests = [".", ...workspaces, packageOfEvaluation].map((folder) =>
    join(folder, "package.json"),
  );
  return [
    {
      files: [...manifests, "package-lock.json", "e2e/node-versions/*.json"],
      before: /"name": "(?:halyard|@halyard\/[\w-]+)",\s+"version": "|"@halyard\/[\w-]+": "/,
    },
    { files: ["clients/server-sdk/src/version.ts"], before: /version = "/ },
    { files: ["docker-compose.yml"], before: /\$\{HALYARD_VERSION:-/ },
    { files: ["deploy/kubernetes/overlays/*/kustomization.yaml"], before: /newTag: / },
  ];
}

/** Returns the distinct versions in a text, including other text at their location, such as ranges. */
export function versionsIn(text: string, { before }: VersionLocation): readonly string[] {
  return [...new Set(text.match(versionAfter(before)))];
}

export function replaceVersions(
  text: string,
  { before }: VersionLocation,
  version: string,
): string {
  return text.replaceAll(versionAfter(before), version);
}

function versionAfter(before: RegExp): RegExp {
  return new RegExp(`(?<=${before.source})[^\\s"'}]+`, "gm");
}
