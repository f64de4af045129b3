import { execFileSync } from "node:child_process";
import { join, matchesGlob } from "node:path";
import type { Config } from "jest";

/** Fails if a test file is run by no tier, for example because it is outside a folder `test`. */
const root = join(import.meta.dirname, "../../..");

const files = ["jest.config.ts", "jest.system.config.ts", "jest.chaos.config.ts"];
const tiers = await Promise.all(
  files.map(async (file) => ((await import(join(root, file))) as { default: Config }).default),
);

function runs({ testMatch = [], testPathIgnorePatterns = [] }: Config, file: string): boolean {
  return (
    [testMatch]
      .flat()
      .some((pattern: string) => matchesGlob(file, pattern.replace("<rootDir>/", ""))) &&
    !testPathIgnorePatterns.some((pattern) => new RegExp(pattern).test(`/${file}`))
  );
}

const listed = execFileSync(
  "git",
  ["ls-files", "--cached", "--others", "--exclude-standard", "*.test.ts", "*.test.tsx"],
  { cwd: root, encoding: "utf8" },
);
for (const file of listed.split("\n").filter((name) => name !== "")) {
  if (tiers.some((tier) => runs(tier, file))) continue;
  console.error(`${file}: neither npm test, npm run test:system nor npm run chaos runs this file.`);
  process.exitCode = 1;
}
