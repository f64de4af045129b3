import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { build } from "esbuild";
import {
  type InstalledPackages,
  installPackages,
  nodeVersions,
  packageNames,
  projectRoot,
  readManifest,
  runIn,
} from "./installed-packages.ts";
import { describePagePrograms } from "./page-programs.ts";

/** Builds every package once and uses the tarballs like an application that installed them. */
let packages: InstalledPackages;
beforeAll(async () => {
  packages = await installPackages();
  const evaluate = /^```js module\n(.*?)^```/ms.exec(textOf("conformance", "README.md"))?.[1];
  writeFileSync(join(packages.folder, "evaluate.mjs"), evaluate ?? "");
}, 240_000);
afterAll(() => packages?.remove());

/** Returns a text of a tarball. */
const textOf = (name: string, path: string) =>
  readFileSync(join(packages.folder, "node_modules/@halyard", name, path), "utf8");

describe("given the tarballs", () => {
  it.each(packageNames)("%s contains the build, the manifest, the license and the page", (name) => {
    const paths = packages.pathsOf(name);
    expect(paths).toContain("dist/index.d.ts");
    const others = paths.filter((path) => !path.startsWith("dist/"));
    expect(others.toSorted()).toEqual(["LICENSE", "README.md", "package.json"]);
  });

  it("evaluation has the version, the license and the dependencies of its source", () => {
    const { version, license, dependencies } = readManifest("libs/evaluation");
    expect(readManifest("clients/evaluation")).toMatchObject({ version, license, dependencies });
  });

  it.each(packageNames)("%s has a complete manifest, without a file that is missing", (name) => {
    const manifest = JSON.parse(textOf(name, "package.json"));
    expect(manifest).toMatchObject({
      version: readManifest(".").version,
      keywords: expect.arrayContaining(["feature-flags"]),
      repository: { type: "git", url: expect.any(String), directory: `clients/${name}` },
      homepage: expect.stringContaining(`clients/${name}`),
      bugs: { url: expect.any(String) },
      engines: { node: "^20.19.0 || >=22.12.0" },
    });
    expect(manifest).not.toHaveProperty("private");
    const { main, types, exports } = manifest;
    const files = Object.values<Record<string, string>>(exports).flatMap(Object.values);
    const entries = [main, types, ...files].map((path) => path.slice(2));
    expect(packages.pathsOf(name)).toEqual(expect.arrayContaining(entries));
  });

  it.each(packageNames)("%s links only to files that it contains", (name) => {
    const paths = packages.pathsOf(name);
    const missing = paths
      .filter((path) => path.endsWith(".md"))
      .flatMap((page) =>
        [...textOf(name, page).matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map(([, address = ""]) =>
          join(dirname(page), address),
        ),
      )
      .filter((path) => !paths.includes(path));
    expect(missing).toEqual([]);
  });

  it.each(packageNames)("%s passes publint and Are the Types Wrong", async (name) => {
    const tarball = packages.tarballOf(name);
    const bin = join(projectRoot, "node_modules/.bin");
    expect(
      await runIn(packages.folder, join(bin, "publint"), "run", "--strict", tarball),
    ).toContain("All good!");
    // Node.js 20.19 and later load ES modules by `require`. The tool warns about older releases. Resolution without
    // `exports`, as before Node.js 12, finds no further entries.
    const ignored = ["--ignore-rules", "cjs-resolves-to-esm", "--profile", "node16"];
    await runIn(packages.folder, join(bin, "attw"), tarball, ...ignored);
  });

  it.each(packageNames)("%s can be installed with the printed command", async (name) => {
    const command = packages.commands.get(`@halyard/${name}`) ?? "";
    const application = await packages.installAlone(command);
    const program = `await import("@halyard/${name}")`;
    await runIn(application, process.execPath, "--input-type=module", "--eval", program);
  });

  it("the browser SDK is smaller than 5,500 bytes, bundled, minified and compressed", async () => {
    const { outputFiles } = await build({
      stdin: {
        contents: 'import { createClient } from "@halyard/browser-sdk"; self.flags = createClient;',
        resolveDir: packages.folder,
      },
      ...{ bundle: true, minify: true, write: false, format: "esm", target: "es2022" },
    });
    const bytes = gzipSync(outputFiles[0]?.contents ?? "", { level: 9 }).length;
    expect(bytes).toBeGreaterThan(1_000);
    expect(bytes).toBeLessThan(5_500);
  });

  it("react is a client module, which a bundler of server components replaces by references", async () => {
    const program = ["--conditions=react-server", "server-component.mjs"];
    const bundler = join(import.meta.dirname, "client-references.mjs");
    // React has no state and no contexts under this condition.
    await expect(runIn(packages.folder, process.execPath, ...program)).rejects.toThrow(
      "'createContext'",
    );
    const output = await runIn(packages.folder, process.execPath, "--import", bundler, ...program);
    const references = Object.values(JSON.parse(output));
    expect(new Set(references)).toEqual(new Set(["client reference"]));
    expect(Object.keys(JSON.parse(output))).toEqual(
      expect.arrayContaining(["useFlag", "useValue"]),
    );
  });

  it("conformance contains every case", () => {
    const suite = JSON.parse(readFileSync(join(projectRoot, "conformance/suite.json"), "utf8")) as {
      files: { file: string }[];
    };
    const cases = suite.files.map(({ file }) => `dist/suite/${file}`);
    expect(packages.pathsOf("conformance")).toEqual(expect.arrayContaining(cases));
  });

  it("no package for browsers imports Node.js", () => {
    for (const name of ["evaluation", "browser-sdk", "openfeature-web", "react"])
      for (const path of packages.pathsOf(name)) {
        const text = textOf(name, path);
        expect({ name, path, imports: text.match(/from "node:[^"]+"/g) ?? [] }).toEqual({
          name,
          path,
          imports: [],
        });
      }
  });
});

for (const { version, binary, describe } of nodeVersions)
  describe(`given Node.js ${version}`, () => {
    it("runs that version", async () => {
      expect(await runIn(packages.folder, binary, "--version")).toMatch(`v${version}.`);
    });

    it("runs an application that uses every package", async () => {
      const output = await runIn(packages.folder, binary, "application.mjs");
      const matched = { value: true, variation: "on", reason: "targeting_match" };
      expect(JSON.parse(output)).toEqual({
        evaluation: matched,
        "server-sdk": matched,
        "openfeature-server": true,
        "browser-sdk": true,
        "openfeature-web": { name: "halyard" },
        react: expect.arrayContaining(["HalyardProvider", "useFlag", "useFlags"]),
      });
    });

    it("loads every package by require", async () => {
      const names = packageNames.map((name) => `@halyard/${name}`);
      const program = `console.log(${JSON.stringify(names)}.every((name) => Object.keys(require(name)).length > 0))`;
      const options = ["--no-warnings", "--input-type=commonjs", "--eval", program];
      expect(await runIn(packages.folder, binary, ...options)).toBe("true\n");
    });

    it("passes the conformance cases with every package that has an engine", async () => {
      const output = await runIn(packages.folder, binary, "conformance.mjs");
      const passed = { failed: 0, failures: [], passed: expect.any(Number) };
      expect(JSON.parse(output)).toMatchObject({ evaluation: passed, "server-sdk": passed });
    });
  });

describe("given the page of the conformance package", () => {
  const page = readFileSync(join(projectRoot, "clients/conformance/README.md"), "utf8");

  it("its program passes the cases with the installed command", async () => {
    const program = /^```js program\n(.*?)^```/ms.exec(page)?.[1] ?? "";
    writeFileSync(join(packages.folder, "evaluator.mjs"), program);
    const command = "node_modules/.bin/halyard-conformance";
    const output = await runIn(packages.folder, command, "--", "node", "evaluator.mjs");
    expect(output).toMatch(/Conformance suite \S+: \d+ cases passed, 0 failed, \d+ skipped\n$/);
  });

  it("its example of the library passes the cases", async () => {
    const program = /^```js library\n(.*?)^```/ms.exec(page)?.[1] ?? "";
    writeFileSync(join(packages.folder, "library.mjs"), program);
    const output = await runIn(packages.folder, "node", "library.mjs");
    expect(output).toMatch(/^\d+ passed, 0 failed, \d+ skipped\n$/);
  });
});

describe("the programs of docs/sdks.md and of the packages' pages", () =>
  describePagePrograms(() => packages));

describe("given an application in TypeScript that checks the types of its dependencies", () => {
  const options = ["--noEmit", "--strict", "--skipLibCheck", "false", "--target", "es2022"];
  const resolutions = {
    nodenext: ["--module", "nodenext"],
    bundler: ["--module", "esnext", "--moduleResolution", "bundler"],
  };
  const tsc = join(projectRoot, "node_modules/.bin/tsc");

  async function compile(resolution: keyof typeof resolutions, ...args: string[]): Promise<string> {
    return runIn(packages.folder, tsc, ...options, ...resolutions[resolution], ...args).catch(
      (error: { stdout?: string }) => error.stdout ?? String(error),
    );
  }

  it.each(["nodenext", "bundler"] as const)("compiles for servers with %s", async (resolution) => {
    const files = ["--lib", "es2022", "--types", "node", "server.mts"];
    expect(await compile(resolution, ...files)).toBe("");
  });

  it.each(["nodenext", "bundler"] as const)("compiles for browsers with %s", async (resolution) => {
    const files = ["--lib", "es2022,dom,dom.iterable", "--types", "", "browser.mts", "react.mts"];
    expect(await compile(resolution, ...files)).toBe("");
  });
});
