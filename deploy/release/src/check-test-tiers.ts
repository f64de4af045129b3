import { execFileSync } from "node:child_process";
import { join, matchesGlob } from "node:path";
import type { Config } from "jest";

/**
 * Fails if a test file is run by no tier, for example because it is outside a folder `test`, or if a file that starts
 * first no longer exists.
 */
const root = join(import.meta.dirname, "../../..");

type Configuration = { tiers: Record<string, Config> };
const { tiers } = (await import(join(root, "jest.config.ts"))) as Configuration;
const sequencer = join(root, "libs/testing/src/jest/sequencer.ts");
const { longest } = (await import(sequencer)) as { longest: string[] };

function runs({ testMatch = [], testPathIgnorePatterns = [] }: Config, file: string): boolean {
  return (
    [testMatch]
      .flat()
      .some((pattern: string) => matchesGlob(file, pattern.replace("<rootDir>/", ""))) &&
    !testPathIgnorePatterns.some((pattern) => new RegExp(pattern).test(`/${file}`))
  );
}

const files = execFileSync(
  "git",
  ["ls-files", "--cached", "--others", "--exclude-standard", "*.test.ts", "*.test.tsx"],
  { cwd: root, encoding: "utf8" },
).split("\n");

const problems = [
  ...files
    .filter((file) => file !== "" && !Object.values(tiers).some((tier) => runs(tier, file)))
    .map((file) => `${file}: neither npm test, npm run test:system nor npm run chaos runs it.`),
  ...longest
    .filter((file) => !files.includes(file))
    .map((file) => `${file}: sequencer.ts lists this file, which does not exist.`),
];
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
