import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { transformSync } from "esbuild";
import { blocksOf } from "../../src/stories/page-blocks.ts";
import { type InstalledPackages, packageNames, projectRoot, runIn } from "./installed-packages.ts";

/** A program of a page, as a file of the project. */
type Program = { file: string; kind: Kind; text: string };
type Kind = "js" | "jsx" | "ts" | "tsx";

/** Named code blocks have their own tests. */
const isKind = (kind: string): kind is Kind => /^[jt]sx?$/.test(kind);

const pages = ["docs/sdks.md", ...packageNames.map((name) => `clients/${name}/README.md`)];

function programsOf(page: string): Program[] {
  return blocksOf(readFileSync(join(projectRoot, page), "utf8")).flatMap(({ kind, text, line }) => {
    if (!isKind(kind)) return [];
    return [{ file: `${page.replaceAll("/", "-")}-line-${line}.${kind}`, kind, text }];
  });
}

/** Checks the programs of docs/sdks.md and of the packages' pages. `application.mts` has the names that they lack. */
export function describePagePrograms(given: () => InstalledPackages): void {
  const programs = pages.flatMap(programsOf);
  // The values that a page shows are compared, and the errors that it shows must occur.
  const comparing = (text: string) =>
    text.replace(/^(.+); \/\/ (true|false)$/gm, "if (($1) !== $2) throw new Error(`$1`);");
  const expectingErrors = (text: string) =>
    text.replace(/^(.+) \/\/ error TS\d+$/gm, "// @ts-expect-error\n$1");

  beforeAll(() => {
    for (const { file, text } of programs)
      writeFileSync(join(given().folder, file), expectingErrors(text));
  });

  describe.each([
    // Without strict null checks, because JavaScript cannot state that a variable of the environment exists.
    ["JavaScript", /^js/, ["--allowJs", "--checkJs", "--strict", "false"]],
    ["TypeScript", /^ts/, ["--strict"]],
  ] as const)("in %s", (_, kinds, args) => {
    it("have no type errors except those that the pages show", async () => {
      const files = programs.filter(({ kind }) => kinds.test(kind)).map(({ file }) => file);
      expect(files.length).toBeGreaterThan(3);
      const options = ["--noEmit", "--target", "es2022", "--jsx", "react-jsx", "--types", "node"];
      const modules = ["--module", "esnext", "--moduleResolution", "bundler"];
      const tsc = join(projectRoot, "node_modules/.bin/tsc");
      const command = [...options, ...modules, ...args, "application.mts", ...files];
      const output = await runIn(given().folder, tsc, ...command).catch(({ stdout }) => stdout);
      expect(output).toBe("");
    });
  });

  const tests = programs.filter(({ text }) => text.includes("createTestClient"));
  it.each(tests)("$file runs, and has the values of the page", async ({ file, kind, text }) => {
    const { code } = transformSync(comparing(text), { loader: kind, jsx: "automatic" });
    writeFileSync(join(given().folder, `${file}.mjs`), code);
    await runIn(given().folder, process.execPath, "--import", "./application.mts", `${file}.mjs`);
  });
}
