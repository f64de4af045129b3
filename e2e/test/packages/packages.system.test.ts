import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
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
}, 240_000);
afterAll(() => packages?.remove());

const pathsOf = (name: string) =>
  packages.packed.find((each) => each.name === `@halyard/${name}`)?.files.map(({ path }) => path);

describe("given the tarballs", () => {
  it.each(packageNames)("%s contains the build, the manifest, the license and the page", (name) => {
    const paths = pathsOf(name) ?? [];
    expect(paths).toContain("dist/index.d.ts");
    const others = paths.filter((path) => !path.startsWith("dist/"));
    expect(others.toSorted()).toEqual(["LICENSE", "README.md", "package.json"]);
  });

  it("evaluation has the version, the license and the dependencies of its source", () => {
    const { version, license, dependencies } = readManifest("libs/evaluation");
    expect(readManifest("clients/evaluation")).toMatchObject({ version, license, dependencies });
  });

  it("conformance contains every case", () => {
    const suite = JSON.parse(readFileSync(join(projectRoot, "conformance/suite.json"), "utf8")) as {
      files: { file: string }[];
    };
    const cases = suite.files.map(({ file }) => `dist/suite/${file}`);
    expect(pathsOf("conformance")).toEqual(expect.arrayContaining(cases));
  });

  it("no package for browsers imports Node.js", () => {
    for (const name of ["evaluation", "browser-sdk", "openfeature-web", "react"])
      for (const path of pathsOf(name) ?? []) {
        const text = readFileSync(
          join(packages.folder, "node_modules/@halyard", name, path),
          "utf8",
        );
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
