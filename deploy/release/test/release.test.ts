import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { nextVersion } from "../src/version.ts";
import { findMentions, readManifest } from "../src/version-files.ts";
import { givenRepository } from "./given-repository.ts";

/** Tests of `npm run release` in a copy of this repository. */
const repository = givenRepository();
afterAll(() => repository.remove());
const present = readManifest(repository.root).version;
const next = String(nextVersion(present, "minor"));
repository.write("CHANGELOG.md", withEntries(repository.read("CHANGELOG.md"), "- An entry.\n\n"));
repository.commit("an entry");

/** Returns the changelog with other entries below Unreleased. */
function withEntries(changelog: string, entries: string): string {
  return changelog.replace(/(?<=## \[Unreleased\]\n\n)[\s\S]*?(?=## \[)/, entries);
}

describe("given a repository that cannot be released", () => {
  let before: string;
  beforeEach(() => {
    before = repository.run("git", "rev-parse", "HEAD");
  });
  afterEach(() => {
    repository.run("git", "switch", "--quiet", "main");
    repository.run("git", "reset", "--quiet", "--hard", before);
    repository.run("git", "clean", "--quiet", "-fd");
  });

  function expectRejection(version: string, ...reasons: string[]) {
    const { status, stdout, stderr } = repository.release(version);
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    for (const reason of reasons) expect(stderr).toContain(reason);
    expect(stderr.match(/\.\n|:\n/g)).toHaveLength(reasons.length);
  }

  it("rejects a work tree with changes", () => {
    repository.write("notes.txt", "");
    expectRejection(next, "The work tree has changes. Commit or stash them:\n?? notes.txt\n");
  });

  it("rejects a branch other than main", () => {
    repository.run("git", "switch", "--quiet", "--create", "topic");
    expectRejection(next, "The branch is topic.");
  });

  it("rejects a version that is not higher", () => {
    expectRejection(present, `${present} is not higher`);
    expectRejection("0.0.99", "0.0.99 is not higher");
  });

  it("rejects a version with a tag", () => {
    repository.run("git", "tag", "v99.0.0");
    expectRejection("99.0.0", "The tag v99.0.0 exists.");
  });

  it("rejects a changelog without unreleased entries", () => {
    const changelog = repository.read("CHANGELOG.md");
    repository.write("CHANGELOG.md", withEntries(changelog, "### Added\n\n"));
    repository.commit("no entry");
    expectRejection(next, "CHANGELOG.md has no entries below Unreleased.");
  });

  it("rejects files that name another version, or none", () => {
    const edit = (path: string, from: string, to: string) =>
      repository.write(path, repository.read(path).replace(from, to));
    edit("e2e/package.json", `"@halyard/testing": "${present}"`, '"@halyard/testing": "^0.0.9"');
    edit("package.json", '    "e2e"', '    "e2e",\n    "absent"');
    repository.commit("a range, and a workspace without a manifest");
    expectRejection(
      next,
      `e2e/package.json names ^0.0.9. Set it to the current version, ${present}.`,
      "absent/package.json does not name the version.",
    );
  });
});

describe("given wrong arguments", () => {
  it.each([[["v1.0.0"]], [["--push", "1.0.0"]], [[]], [["1.0.0", "2.0.0"]]])(
    "explains the usage after %j",
    (args) => {
      const { status, stderr } = repository.release(...args);
      expect(status).toBe(2);
      expect(stderr).toContain("npm run release -- <version>");
    },
  );
});

describe("given a repository that can be released", () => {
  it("shows the changes of a dry run and writes nothing", () => {
    const { status, stdout } = repository.release("minor", "--dry-run");
    expect(status).toBe(0);
    expect(stdout).toContain(`Would set the version ${present} to ${next} in:\n  package.json\n`);
    expect(repository.run("git", "status", "--porcelain")).toBe("");
    expect(repository.run("git", "tag")).not.toContain(next);
  });

  it("prints the command that undoes a failed release", () => {
    const before = repository.run("git", "rev-parse", "HEAD");
    repository.run("git", "config", "tag.gpgSign", "true");
    repository.run("git", "config", "gpg.program", "false");
    const { status, stderr } = repository.release("minor");
    repository.run("git", "config", "tag.gpgSign", "false");
    expect(status).toBe(1);
    expect(repository.run("git", "rev-parse", "HEAD")).not.toBe(before);
    repository.run("sh", "-c", String(/^ {2}(git reset .*)$/m.exec(stderr)?.[1]));
    expect(repository.run("git", "rev-parse", "HEAD")).toBe(before);
    expect(repository.run("git", "status", "--porcelain")).toBe("");
  });

  it("commits the version, the changelog and the contracts, and tags the commit", () => {
    expect(repository.release("minor")).toEqual({
      status: 0,
      stdout: expect.stringContaining("git push --follow-tags"),
      stderr: "",
    });
    expect(repository.run("git", "log", "-1", "--format=%s")).toBe(`release: ${next}`);
    expect(repository.run("git", "cat-file", "-t", `v${next}`)).toBe("tag");
    expect(repository.run("git", "rev-parse", `v${next}^{}`)).toBe(
      repository.run("git", "rev-parse", "HEAD"),
    );
    expect(repository.run("git", "status", "--porcelain")).toBe("");
    expectVersion();
    expectChangelog();
    expectContracts();
    expectFormat();
  });

  function expectVersion() {
    expect(readManifest(repository.root).version).toBe(next);
    const mentions = findMentions(repository.root);
    expect(mentions.filter(({ versions }) => versions.join() !== next)).toEqual([]);
    expect(JSON.parse(repository.read("docs/openapi.json")).info.version).toBe(next);
    expectLockOfManifests();
  }

  /** `npm ci` accepts a lock file with other versions of the workspaces, so it cannot check this. */
  function expectLockOfManifests() {
    const { packages } = JSON.parse(repository.read("package-lock.json"));
    const paths = Object.keys(packages).filter((path) => !path.includes("node_modules"));
    expect(paths).toContain("services/management");
    for (const path of paths) {
      const manifest = JSON.parse(repository.read(join(path, "package.json")));
      expect(versionsOf(packages[path])).toEqual(versionsOf(manifest));
    }
  }

  function versionsOf({ version, dependencies, devDependencies }: Record<string, unknown>) {
    return { version, dependencies, devDependencies };
  }

  function expectChangelog() {
    const changelog = repository.read("CHANGELOG.md");
    expect(changelog).toMatch(
      /## \[Unreleased\]\n\n## \[[\d.]+\] - \d{4}-\d\d-\d\d\n\n- An entry\.\n\n## /,
    );
    expect(changelog).toContain(`\n[${next}]: ../../compare/v${present}...v${next}\n`);
  }

  function expectContracts() {
    const folder = `libs/contracts/released/${next}`;
    const schemas = readdirSync(join(repository.root, "docs/schemas"));
    expect(readdirSync(join(repository.root, folder)).toSorted()).toEqual(
      [...schemas, "migrations.json"].toSorted(),
    );
    for (const schema of schemas)
      expect(repository.read(`${folder}/${schema}`)).toBe(
        repository.read(`docs/schemas/${schema}`),
      );
    const migration = "services/management/migrations/0001_tenancy.sql";
    expect(JSON.parse(repository.read(`${folder}/migrations.json`))[migration]).toBe(
      createHash("sha256").update(repository.read(migration)).digest("hex"),
    );
  }

  function expectFormat() {
    const changed = repository.run("git", "diff", "--name-only", "HEAD~1").split("\n");
    repository.run("node_modules/.bin/biome", "ci", "--no-errors-on-unmatched", ...changed);
  }

  it("rejects the same release a second time", () => {
    const { status, stderr } = repository.release(next);
    expect(status).toBe(1);
    expect(stderr).toContain(`${next} is not higher`);
    expect(stderr).toContain(`The tag v${next} exists.`);
    expect(stderr).toContain("no entries below Unreleased");
  });
});
