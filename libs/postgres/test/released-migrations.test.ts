import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@jest/globals";

/**
 * Databases have run the migrations of the releases and run each only once. So a released file never
 * changes: a correction is another migration. `npm run release` writes
 * `libs/postgres/released-migrations/<version>.sha256` in the format of `sha256sum`, with paths from the
 * project's root.
 */
const root = fileURLToPath(new URL("../../..", import.meta.url));
const folder = join(root, "libs/postgres/released-migrations");

describe.each(readdirSync(folder))("the migrations in %s", (list) => {
  const lines = readFileSync(join(folder, list), "utf8").trimEnd().split("\n");

  it("are of every service that has a schema", () => {
    const services = lines.map((line) => /services\/([^/]+)\/migrations/.exec(line)?.[1]);
    expect([...new Set(services)].sort()).toEqual([
      "management",
      "scheduler",
      "usage-metering",
      "webhook-dispatcher",
    ]);
  });

  it("are unchanged", () => {
    const changed = lines.filter((line) => {
      const [expected, file = ""] = line.split("  ");
      const content = readFileSync(join(root, file));
      return createHash("sha256").update(content).digest("hex") !== expected;
    });
    expect(changed).toEqual([]);
  });
});
