import { findChangelogProblem } from "./changelog.ts";
import { isHigher } from "./version.ts";
import type { VersionMention } from "./version-files.ts";

/** The state of the repository that a release depends on. */
type ReleaseState = {
  present: string;
  next: string;
  branch: string;
  /** The output of `git status --porcelain`. */
  status: string;
  tagExists: boolean;
  changelog: string;
  mentions: readonly VersionMention[];
};

/** Returns everything that prevents the release. Each text states the problem, then the remedy. */
export function findProblems(state: ReleaseState): readonly string[] {
  const { present, next, branch, status, tagExists, changelog, mentions } = state;
  const problems: string[] = [];
  if (status !== "") problems.push(`The work tree has changes. Commit or stash them:\n${status}`);
  if (branch !== "main")
    problems.push(`The branch is ${branch || "a detached HEAD"}. Switch to main to release.`);
  if (!isHigher(next, present))
    problems.push(`${next} is not higher than the current version. Choose one above ${present}.`);
  if (tagExists) problems.push(`The tag v${next} exists. Choose a higher version.`);
  const changelogProblem = findChangelogProblem(changelog);
  if (changelogProblem !== undefined) problems.push(changelogProblem);
  for (const mention of mentions) {
    const problem = findMentionProblem(mention, present);
    if (problem !== undefined) problems.push(problem);
  }
  return problems;
}

function findMentionProblem({ path, versions }: VersionMention, present: string) {
  if (versions.length === 0)
    return `${path} does not name the version. Correct it or deploy/release/src/version-locations.ts.`;
  const others = versions.filter((version) => version !== present);
  if (others.length === 0) return undefined;
  return `${path} names ${others.join(", ")}. Set it to the current version, ${present}.`;
}
