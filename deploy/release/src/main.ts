import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { releaseChangelog } from "./changelog.ts";
import { findProblems } from "./find-problems.ts";
import { keepReleasedContracts, releasedFolder } from "./released-contracts.ts";
import { nextVersion } from "./version.ts";
import { findMentions, readManifest, setVersion, type VersionMention } from "./version-files.ts";

/** `npm run release`: prepares the commit and the tag of a release. All checks precede all writes. */
const help = `Prepares a release: version, changelog, released contracts, commit and tag. It never pushes.

  npm run release -- <version>            such as 0.2.0
  npm run release -- major|minor|patch    raises that part of the current version

Options
  --dry-run   shows what would change and writes nothing
  --help      shows this help

Run it on main with a clean work tree, and with entries below Unreleased in CHANGELOG.md.
`;

const usageExitCode = 2;
const failedExitCode = 1;

const root = fileURLToPath(new URL("../../../", import.meta.url));
const changelogFile = join(root, "CHANGELOG.md");

process.exitCode = main(process.argv.slice(2));

function main(given: string[]): number {
  const parsed = parse(given);
  if (typeof parsed === "string") return reject(parsed);
  const { values, positionals } = parsed;
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  const [wanted, ...rest] = positionals;
  if (wanted === undefined || rest.length > 0) return reject("Expected one version.");
  const present = readManifest(root).version;
  const next = nextVersion(present, wanted);
  if (next === undefined)
    return reject(`Invalid version ${wanted}: expected three numbers such as 0.2.0.`);
  const changelog = readFileSync(changelogFile, "utf8");
  const mentions = findMentions(root);
  const problems = findProblems({
    present,
    next,
    branch: git("branch", "--show-current"),
    status: git("status", "--porcelain"),
    tagExists: git("tag", "--list", `v${next}`) !== "",
    changelog,
    mentions,
  });
  if (problems.length > 0) {
    process.stderr.write(`${problems.join("\n")}\n`);
    return failedExitCode;
  }
  if (values["dry-run"]) {
    process.stdout.write(describeChanges(present, next, mentions));
    return 0;
  }
  return release(next, changelog);
}

function parse(given: string[]) {
  try {
    return parseArgs({
      args: given,
      allowPositionals: true,
      options: {
        "dry-run": { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    return (error as Error).message;
  }
}

function reject(problem: string): number {
  process.stderr.write(`${problem}\n\n${help}`);
  return usageExitCode;
}

function describeChanges(present: string, next: string, mentions: readonly VersionMention[]) {
  return `Would set the version ${present} to ${next} in:
${mentions.map(({ path }) => `  ${path}`).join("\n")}
Would move the entries below Unreleased in CHANGELOG.md to ${next}.
Would run npm run generate.
Would write the contracts of ${next} to ${releasedFolder}/${next}.
Would commit "release: ${next}" and tag v${next}.
Nothing was written.
`;
}

function release(version: string, changelog: string): number {
  const before = git("rev-parse", "HEAD");
  const today = new Date().toISOString().slice(0, "yyyy-mm-dd".length);
  try {
    setVersion(root, version);
    writeFileSync(changelogFile, releaseChangelog(changelog, version, today));
    run(process.execPath, "deploy/gateway/src/generate.ts");
    keepReleasedContracts(root, version);
    git("add", "--all");
    git("commit", "--quiet", "--message", `release: ${version}`);
    git("tag", "--annotate", `v${version}`, "--message", `Halyard ${version}`);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}
The release is incomplete. Undo it, then run the command again:
  git reset --hard ${before} && git clean -fd ${releasedFolder}
`);
    return failedExitCode;
  }
  process.stdout.write(describeNextSteps(version));
  return 0;
}

function describeNextSteps(version: string): string {
  return `Release ${version} is committed and tagged v${version}. Next:
  1. Push it: git push --follow-tags
  2. Publish the packages and the images. The release workflow does this if it is configured, see docs/releasing.md.
     By hand: npm run pack:clients, then sh deploy/docker/build <registry>
  3. Make the data fixture of ${version}, so that tests start later versions on its data, and commit it:
     node_modules/.bin/node e2e/src/checks/release/make-fixture.ts
`;
}

function git(...args: string[]): string {
  return run("git", ...args);
}

function run(command: string, ...args: string[]): string {
  return execFileSync(command, args, { cwd: root, encoding: "utf8", stdio: "pipe" }).trimEnd();
}
