import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { makeHome } from "../src/home.ts";
import { launchHalyard, prepareLaunches } from "./launcher.ts";
import { throwawayDirectories } from "./throwaway.ts";

prepareLaunches();
const throwawayDirectory = throwawayDirectories();

/** Creating a directory in /proc fails with ENOENT although the parent exists. */
const onLinux = process.platform === "linux";

describe("given a home that does not exist", () => {
  it("creates it and its parents", () => {
    const home = join(throwawayDirectory(), "a/b");
    makeHome(home);
    makeHome(home);
    expect(statSync(home).mode & 0o777).toBe(0o711);
  });
});

describe("given a home that is not writable", () => {
  it("ends the start and names the directory", async () => {
    const file = join(throwawayDirectory(), "file");
    writeFileSync(file, "");

    for (const home of [file, join(file, "home"), ...(onLinux ? ["/proc/halyard"] : [])]) {
      const halyard = launchHalyard({ home });
      expect(await halyard.exited).toBe(1);
      expect(halyard.output()).toContain(`Could not write to the directory ${home}`);
      expect(halyard.output()).toContain("HALYARD_HOME=");
    }
  });
});
