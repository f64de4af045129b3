import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { type GeneratedFile, generateFiles } from "./generated-files.ts";

/** Writes the generated files. With `--check`, reports the files that are out of date instead. */
const root = new URL("../../../", import.meta.url);

/** A folder that contains generated files only, so that files that are no longer generated can be deleted. */
const generatedFolder = "docs/schemas";

const { values } = parseArgs({ options: { check: { type: "boolean", default: false } } });
const files = await generateFiles();
if (values.check) await check(files);
else await write(files);

async function check(expected: readonly GeneratedFile[]): Promise<void> {
  const stale: string[] = [];
  for (const { path, content } of expected)
    if ((await readIfThere(path)) !== content) stale.push(path);
  stale.push(...(await leftOver(expected)));
  if (stale.length === 0) return;
  const subject = stale.length === 1 ? "is" : "are";
  process.stderr.write(`${stale.join(", ")} ${subject} out of date: run npm run generate.\n`);
  process.exitCode = 1;
}

async function write(expected: readonly GeneratedFile[]): Promise<void> {
  await mkdir(new URL(generatedFolder, root), { recursive: true });
  for (const { path, content } of expected) await writeFile(new URL(path, root), content);
  for (const path of await leftOver(expected)) await rm(new URL(path, root));
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(new URL(path, root), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

async function leftOver(expected: readonly GeneratedFile[]): Promise<string[]> {
  const present = await readdir(new URL(generatedFolder, root)).catch(() => []);
  const wanted = new Set(expected.map(({ path }) => path));
  return present.map((name) => `${generatedFolder}/${name}`).filter((path) => !wanted.has(path));
}
