/** The changelog in the format of Keep a Changelog: a section per version, link references at the end. */
const unreleasedHeading = "## [Unreleased]\n";
const unreleasedLink = /^\[Unreleased\]: (?<base>.+\/compare\/)v(?<previous>.+)\.\.\.main$/m;
const startOfNextSection = /^(?:## |\[[^\]]+\]: )/m;

/** Returns why the changelog cannot be released, if it cannot. */
export function findChangelogProblem(changelog: string): string | undefined {
  if (!changelog.includes(unreleasedHeading))
    return 'CHANGELOG.md has no heading "## [Unreleased]". Add it above the latest version.';
  if (!/^[-*] /m.test(unreleasedSection(changelog)))
    return "CHANGELOG.md has no entries below Unreleased. Describe what changed, then commit.";
  if (!unreleasedLink.test(changelog))
    return 'CHANGELOG.md has no link "[Unreleased]: …/compare/v<version>...main". Add it at the end.';
  return undefined;
}

/** Moves the unreleased entries to a section for the version. The new Unreleased section is empty. */
export function releaseChangelog(changelog: string, version: string, date: string): string {
  return changelog
    .replace(unreleasedHeading, () => `${unreleasedHeading}\n## [${version}] - ${date}\n`)
    .replace(
      unreleasedLink,
      `[Unreleased]: $<base>v${version}...main\n[${version}]: $<base>v$<previous>...v${version}`,
    );
}

function unreleasedSection(changelog: string): string {
  const start = changelog.indexOf(unreleasedHeading) + unreleasedHeading.length;
  const [section = ""] = changelog.slice(start).split(startOfNextSection, 1);
  return section;
}
