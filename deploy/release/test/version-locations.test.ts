import { describe, expect, it } from "@jest/globals";
import { nextVersion } from "../src/version.ts";
import { findMentions, readManifest } from "../src/version-files.ts";
import { replaceVersions, versionsIn } from "../src/version-locations.ts";
import { projectRoot } from "./given-repository.ts";

describe("given this repository", () => {
  it("has the version of package.json at every location", () => {
    const { version } = readManifest(projectRoot);
    const mentions = findMentions(projectRoot);
    expect(mentions.length).toBeGreaterThan(10);
    expect(mentions.filter(({ versions }) => versions.join() !== version)).toEqual([]);
  });
});

describe("given a location of the version", () => {
  const location = { files: ["kustomization.yaml"], before: /newTag: "?|^VERSION=/ };

  it("finds each distinct version once, and ranges", () => {
    const text = '  newTag: 0.1.0\n  newTag: "0.1.0"\nVERSION=^0.2.0\n';
    expect(versionsIn(text, location)).toEqual(["0.1.0", "^0.2.0"]);
    expect(versionsIn("OTHER_VERSION=0.1.0", location)).toEqual([]);
  });

  it("replaces the version and nothing else", () => {
    const text = 'newTag: "0.1.0" # not 0.1.0\nVERSION=0.1.0\n';
    expect(replaceVersions(text, location, "0.2.0")).toBe(
      'newTag: "0.2.0" # not 0.1.0\nVERSION=0.2.0\n',
    );
  });
});

describe("given a requested version", () => {
  it.each([
    ["patch", "1.2.4"],
    ["minor", "1.3.0"],
    ["major", "2.0.0"],
    ["1.10.0", "1.10.0"],
    ["v1.3.0", undefined],
    ["1.3", undefined],
    ["1.03.0", undefined],
    ["1.3.0-rc.1", undefined],
  ])("%s after 1.2.3 is %s", (wanted, expected) => {
    expect(nextVersion("1.2.3", wanted)).toBe(expected);
  });
});
