import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { beforeEach, describe, expect, it } from "@jest/globals";
import { ensureDashboard } from "../src/dashboard-build.ts";
import { PROJECT_DIR } from "./launcher.ts";
import { throwawayDirectories } from "./throwaway.ts";

const throwawayDirectory = throwawayDirectories();

/** Tests of the build before a start, with a dashboard of one line. */
let projectDir: string;
let script: string;

beforeEach(() => {
  projectDir = throwawayDirectory();
  const folder = join(projectDir, "services/dashboard");
  script = join(folder, "src/main.ts");
  mkdirSync(join(folder, "src"), { recursive: true });
  mkdirSync(join(projectDir, ".cache"));
  symlinkSync(join(PROJECT_DIR, "node_modules"), join(projectDir, "node_modules"));
  writeFileSync(join(projectDir, "package-lock.json"), "{}");
  writeFileSync(join(folder, "index.html"), '<script type="module" src="/src/main.ts"></script>');
  writeFileSync(script, 'document.title = "first";');
});

const builds = () => readdirSync(join(projectDir, ".cache/dashboard"));

function contentOf(folder: string): string {
  const [name = ""] = readdirSync(join(folder, "assets"));
  return readFileSync(join(folder, "assets", name), "utf8");
}

describe("given the sources of a dashboard", () => {
  it("builds them once, and again after a change of a source or of the packages", async () => {
    const first = await ensureDashboard({ projectDir });
    expect(first.isNew).toBe(true);
    expect(contentOf(first.folder)).toContain("first");
    expect(await ensureDashboard({ projectDir })).toEqual({ ...first, isNew: false });

    writeFileSync(script, 'document.title = "second";');
    const second = await ensureDashboard({ projectDir });
    expect(contentOf(second.folder)).toContain("second");

    writeFileSync(join(projectDir, "package-lock.json"), '{ "version": 2 }');
    expect(await ensureDashboard({ projectDir })).toMatchObject({ isNew: true });
  });

  /** Gives the dashboard our Vite configuration and packages. Returns its folder. */
  function useOurConfiguration(): string {
    const ours = join(PROJECT_DIR, "services/dashboard");
    const theirs = join(projectDir, "services/dashboard");
    copyFileSync(`${ours}/vite.config.ts`, `${theirs}/vite.config.ts`);
    symlinkSync(`${ours}/node_modules`, `${theirs}/node_modules`);
    return theirs;
  }

  it("writes the licenses of the packages that the scripts contain", async () => {
    useOurConfiguration();
    writeFileSync(script, 'import { version } from "react"; document.title = version;');
    const { folder } = await ensureDashboard({ projectDir });
    const licenses = readFileSync(join(folder, "third-party-licenses.md"), "utf8");
    expect(licenses).toMatch(/^## react - \S+ \(MIT\)$/m);
    expect(licenses).toContain("Copyright (c) Meta Platforms");
  });

  it("writes a compressed copy beside each file that shrinks", async () => {
    const theirs = useOurConfiguration();
    writeFileSync(join(theirs, "src/short.css"), "a { color: red }");
    writeFileSync(script, 'import "./short.css"; document.title = "long";');
    const { folder } = await ensureDashboard({ projectDir });
    const names = readdirSync(join(folder, "assets"));
    const asset = join(folder, "assets", names.find((name) => name.endsWith(".js")) ?? "");
    const plain = readFileSync(asset, "utf8");
    expect(brotliDecompressSync(readFileSync(`${asset}.br`)).toString()).toBe(plain);
    expect(gunzipSync(readFileSync(`${asset}.gz`)).toString()).toBe(plain);
    expect(names.filter((name) => name.includes(".css"))).toHaveLength(1);
  });

  it("gives simultaneous builds the same complete folder", async () => {
    const both = await Promise.all([
      ensureDashboard({ projectDir }),
      ensureDashboard({ projectDir }),
    ]);
    expect(both[0]?.folder).toBe(both[1]?.folder);
    expect(contentOf(both[0]?.folder ?? "")).toContain("first");
    expect(builds()).toHaveLength(1);
  });

  it("reports what Vite printed, and leaves no folder, if they cannot be built", async () => {
    writeFileSync(script, 'import "./missing.ts";');
    await expect(ensureDashboard({ projectDir })).rejects.toThrow(
      /build of the dashboard failed[\s\S]+src\/main\.ts/,
    );
    expect(builds()).toEqual([]);
  });
});
