import { execFileSync } from "node:child_process";
import { join, matchesGlob } from "node:path";
import type { Config } from "jest";
import chaos from "../../../jest.chaos.config.ts";
import test from "../../../jest.config.ts";
import system from "../../../jest.system.config.ts";

/** Fails if a test file is run by no tier, for example because it is outside a folder `test`. */
const root = join(import.meta.dirname, "../../..");

function runs({ testMatch = [], testPathIgnorePatterns = [] }: Config, file: string): boolean {
  return (
    testMatch.some((pattern) => matchesGlob(file, pattern.replace("<rootDir>/", ""))) &&
    !testPathIgnorePatterns.some((pattern) => new RegExp(pattern).test(`/${file}`))
  );
}

const listed = execFileSync(
  "git",
  ["ls-files", "--cached", "--others", "--exclude-standard", "*.test.ts", "*.test.tsx"],
  { cwd: root, encoding: "utf8" },
);
for (const file of listed.split("\n").filter((name) => name !== "")) {
  if ([test, system, chaos].some((tier) => runs(tier, file))) continue;
  console.error(`${file}: neither npm test, npm run test:system nor npm run chaos runs this file.`);
  process.exitCode = 1;
}
