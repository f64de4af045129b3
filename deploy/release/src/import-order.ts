import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type FolderImports, readFolderImports } from "./folder-circles.ts";

/**
 * Finds imports against a declared order. A table in Markdown declares it: the first cell of each row names folders or
 * libraries, and each of them imports only from rows above its own.
 */
type Order = readonly (readonly string[])[];

/** Returns the order in the table whose first column has a heading, or undefined without that table. */
function readOrder(file: string, heading: string): Order | undefined {
  const lines = readFileSync(file, "utf8").split("\n");
  const start = lines.findIndex((line) => line.startsWith(`| ${heading} |`));
  if (start === -1) return undefined;
  // The second line of the table is the rule below its heading.
  const rows = lines.slice(start + 2);
  const length = rows.findIndex((line) => !line.startsWith("|"));
  return rows
    .slice(0, length === -1 ? undefined : length)
    .map((row) =>
      [...(row.split("|")[1] ?? "").matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
    );
}

/** Returns what contradicts the order in the README of a workspace: none without a table. */
export function findFolderDisorder(workspace: string): string[] {
  const order = readOrder(join(workspace, "README.md"), "Folder");
  if (order === undefined) return [];
  const sources = join(workspace, "src");
  const imports = new Map(foldersIn(sources).map((name) => [name, new Map<string, string>()]));
  for (const [path, targets] of readFolderImports(sources)) {
    const from = topOf(path);
    for (const [target, file] of targets)
      if (imports.has(topOf(target)) && topOf(target) !== from)
        imports.get(from)?.set(topOf(target), file);
  }
  return findDisorder(order, imports);
}

/** Returns what contradicts the order of the libraries in `docs/architecture.md`. */
export function findLibraryDisorder(root: string): string[] {
  const order = readOrder(join(root, "docs/architecture.md"), "Library");
  if (order === undefined) return ["docs/architecture.md has no table of libraries"];
  const names = foldersIn(join(root, "libs"));
  return findDisorder(order, new Map(names.map((name) => [name, readLibraryImports(root, name)])));
}

/** Returns the libraries that a library imports, with one file that imports each of them. */
function readLibraryImports(root: string, name: string): Map<string, string> {
  const sources = join(root, "libs", name, "src");
  const imports = new Map<string, string>();
  for (const path of readdirSync(sources, { recursive: true, encoding: "utf8" }))
    if (path.endsWith(".ts"))
      for (const [, target = ""] of readFileSync(join(sources, path), "utf8").matchAll(
        libraryImport,
      ))
        imports.set(target, `libs/${name}/src/${path}`);
  return imports;
}

const libraryImport = /(?:from|import)\s*\(?\s*"@halyard\/([^"/]+)/g;

const foldersIn = (parent: string): string[] =>
  readdirSync(parent, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);

const topOf = (path: string): string => path.split("/")[0] ?? path;

function findDisorder(order: Order, imports: FolderImports): string[] {
  const rowOf = new Map(order.flatMap((names, row) => names.map((name) => [name, row] as const)));
  const unknown = [...rowOf.keys()].filter((name) => !imports.has(name));
  const problems = unknown.map((name) => `the table names ${name}, which does not exist`);
  for (const [from, targets] of imports) {
    const row = rowOf.get(from);
    if (row === undefined) problems.push(`the table lacks ${from}`);
    else
      for (const [to, file] of targets)
        if ((rowOf.get(to) ?? -1) >= row)
          problems.push(`${file} imports ${to}, which is not above ${from}`);
  }
  return problems;
}
