import { describe, expect, it } from "@jest/globals";
import { findChangelogProblem, releaseChangelog } from "../src/changelog.ts";

const changelog = `# Changelog

## [Unreleased]

### Added

- Images.

## [0.1.0] - 2026-11-22

- The first release.

[Unreleased]: ../../compare/v0.1.0...main
[0.1.0]: ../../releases/tag/v0.1.0
`;

describe("given a changelog with an unreleased entry", () => {
  it("moves the entry to a section with version and date, and links the version", () => {
    expect(findChangelogProblem(changelog)).toBeUndefined();
    expect(releaseChangelog(changelog, "0.2.0", "2027-01-31")).toBe(`# Changelog

## [Unreleased]

## [0.2.0] - 2027-01-31

### Added

- Images.

## [0.1.0] - 2026-11-22

- The first release.

[Unreleased]: ../../compare/v0.2.0...main
[0.2.0]: ../../compare/v0.1.0...v0.2.0
[0.1.0]: ../../releases/tag/v0.1.0
`);
  });
});

describe("given a changelog that cannot be released", () => {
  it.each([
    ["no entry", changelog.replace("- Images.\n", ""), "no entries below Unreleased"],
    ["no heading", changelog.replace("## [Unreleased]", "## Next"), "no heading"],
    ["no link", changelog.replace("[Unreleased]: ", "[Next]: "), "no link"],
  ])("reports that it has %s", (_, text, problem) => {
    expect(findChangelogProblem(text)).toContain(problem);
  });
});
