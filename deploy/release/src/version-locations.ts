/** Files that name the version, as glob patterns from the root, and the text in front of the version. */
export type VersionLocation = { files: readonly string[]; before: RegExp };

/**
 * The places that name the version of Halyard. `npm run release` sets the version in all of them and
 * fails when a pattern matches no file, or a file does not name the present version. Generated files
 * are absent: they take the version from package.json.
 */
export function versionLocations(workspaces: readonly string[]): readonly VersionLocation[] {
  const manifests = ["package.json", ...workspaces.map((workspace) => `${workspace}/package.json`)];
  return [
    {
      files: [...manifests, "package-lock.json"],
      before: /"name": "(?:halyard|@halyard\/[\w-]+)",\s+"version": "|"@halyard\/[\w-]+": "/,
    },
    { files: ["docker-compose.yml"], before: /\$\{HALYARD_VERSION:-/ },
    { files: ["deploy/kubernetes/overlays/*/kustomization.yaml"], before: /newTag: / },
  ];
}

/** Returns the distinct versions that a text names, and other text in their place such as ranges. */
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
