import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { loadStripped, stripSources } from "../src/system/stripped-sources.ts";

describe("the sources in the images", () => {
  const root = stripSources();
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  // The dashboard runs in browsers, and is built.
  const services = readdirSync(join(root, "services")).filter((name) => name !== "dashboard");

  it.each(services)("%s starts without the compiler", (service) => {
    const program = join(root, "services", service, "src/main.ts");
    // With this option Node.js itself rejects TypeScript files.
    const given = ["--no-strip-types", ...loadStripped, program];
    const { status, stderr } = spawnSync(process.execPath, given, { env: {}, encoding: "utf8" });
    expect(stderr).toMatch(/^The configuration has/);
    expect(status).toBe(2);
  });
});
