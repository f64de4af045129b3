import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "@jest/globals";

/**
 * A database runs each migration once, so a released file never changes, and a correction is another migration.
 * `npm run release` records the SHA-256 of each file, from 0.2.0 on.
 */
const root = fileURLToPath(new URL("../../..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const fileOf = (version: string) => `libs/contracts/released/${version}/migrations.json`;

it("are recorded for every release from 0.2.0 on", () => {
  const versions = [...read("CHANGELOG.md").matchAll(/^## \[(\d[^\]]*)\]/gm)].map(([, one]) => one);
  expect(versions).toContain("0.1.0");
  const recorded = globSync(fileOf("*"), { cwd: root }).sort();
  const expected = versions.filter((version) => version !== "0.1.0").map((one) => fileOf(`${one}`));
  expect(recorded).toEqual(expected.sort());
});

it("are unchanged since their release", () => {
  for (const list of globSync(fileOf("*"), { cwd: root })) {
    const recorded: Record<string, string> = JSON.parse(read(list));
    const services = Object.keys(recorded).map((path) => path.split("/")[1]);
    expect(new Set(services)).toEqual(
      new Set(["management", "scheduler", "usage-metering", "webhook-dispatcher"]),
    );
    const present = Object.keys(recorded).map((path) => [
      path,
      createHash("sha256").update(read(path)).digest("hex"),
    ]);
    expect(Object.fromEntries(present)).toEqual(recorded);
  }
});
