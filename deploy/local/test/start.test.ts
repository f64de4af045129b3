import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { PROJECT_DIR } from "./launcher.ts";
import { throwawayDirectories } from "./throwaway.ts";

const throwawayDirectory = throwawayDirectories();

const manifest = JSON.parse(readFileSync(join(PROJECT_DIR, "package.json"), "utf8"));
const START = join(PROJECT_DIR, "deploy/local/src/start.mjs");

function run(args: string[]) {
  return spawnSync(process.execPath, args, { encoding: "utf8" });
}

/** Returns options that preload a module, which makes Node.js report another version. */
function reporting(version: string): string[] {
  const versions = `{ ...process.versions, node: "${version}" }`;
  const preload = `Object.defineProperty(process, "versions", { value: ${versions} })`;
  return ["--import", `data:text/javascript,${encodeURIComponent(preload)}`];
}

describe("given a Node.js that is too old because install scripts were ignored", () => {
  it("prints the command that runs them", () => {
    const { status, stderr } = run([...reporting("20.20.2"), START]);

    expect(status).toBe(2);
    expect(stderr).toContain("this is Node.js 20.20.2");
    expect(stderr).toContain("npm rebuild --ignore-scripts=false");
    expect(stderr).not.toContain("    at ");
  });

  it.each(["setup", "migrate", "verify-history", "remove-demo-keys", "test"])(
    "prints it for the npm script %s",
    (name) => {
      const { status, stderr } = spawnSync("sh", ["-c", manifest.scripts[name]], {
        cwd: PROJECT_DIR,
        encoding: "utf8",
        env: {
          PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
          NODE_OPTIONS: reporting("20.20.2").join(" "),
        },
      });

      expect(status).toBe(2);
      expect(stderr).toContain("npm rebuild --ignore-scripts=false");
    },
  );
});

describe("given a checkout without packages", () => {
  it("prints the command that installs them", () => {
    const checkout = throwawayDirectory();
    const folder = join(checkout, "deploy/local/src");
    mkdirSync(folder, { recursive: true });
    for (const file of ["start.mjs", "check-node.mjs"]) {
      cpSync(join(dirname(START), file), join(folder, file));
    }

    const { status, stderr } = run([join(folder, "start.mjs")]);

    expect(status).toBe(2);
    expect(stderr).toContain("  npm ci\n");
  });
});

describe("given an installation without development dependencies", () => {
  it("has the Node.js that runs TypeScript", () => {
    expect(manifest.dependencies.node).toMatch(/^24\./);
  });
});

describe("given a Node.js that runs TypeScript", () => {
  it("passes its arguments to the launcher", () => {
    const { status, stdout } = run([START, "--help"]);

    expect(status).toBe(0);
    expect(stdout).toContain("Runs the whole of Halyard");
  });
});
