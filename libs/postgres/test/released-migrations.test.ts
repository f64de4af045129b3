import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@jest/globals";

/**
 * A database runs each migration once, so a released file never changes, and a correction is another migration.
 * `npm run release` records the SHA-256 of each file.
 */
const root = fileURLToPath(new URL("../../..", import.meta.url));

describe.each(globSync("libs/contracts/released/*/migrations.json", { cwd: root }))(
  "the migrations in %s",
  (list) => {
    const recorded: Record<string, string> = JSON.parse(readFileSync(join(root, list), "utf8"));

    it("belong to all services with a schema", () => {
      const services = Object.keys(recorded).map((path) => path.split("/")[1]);
      expect(new Set(services)).toEqual(
        new Set(["management", "scheduler", "usage-metering", "webhook-dispatcher"]),
      );
    });

    it.each(Object.entries(recorded))("include %s, which is unchanged", (path, digest) => {
      const content = readFileSync(join(root, path));
      expect(createHash("sha256").update(content).digest("hex")).toBe(digest);
    });
  },
);
