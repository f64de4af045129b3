import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { loadStripped, stripSources } from "../src/system/stripped-sources.ts";

describe("the sources in the images", () => {
  const root = stripSources();

  it.each(readdirSync(join(root, "services")))("%s starts without the compiler", (service) => {
    const program = join(root, "services", service, "src/main.ts");
    // With this option Node.js loads no TypeScript file by itself.
    const given = ["--no-strip-types", ...loadStripped, program];
    const { status, stderr } = spawnSync(process.execPath, given, { env: {}, encoding: "utf8" });
    expect(stderr).toMatch(/^The configuration has/);
    expect(status).toBe(2);
  });
});
