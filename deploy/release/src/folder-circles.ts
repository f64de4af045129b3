import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/**
 * Finds circles of imports between the folders of a source tree. Imports of types count. Each file directly in the tree
 * counts as a folder, because `main.ts` imports all folders, and some folders import `config.ts`.
 */
type Circle = {
  folders: readonly string[];
  /** The imports between these folders, such as "flags/flag-store.ts imports history". */
  imports: readonly string[];
};

/** The imported folders of each folder, with one file that imports each of them. */
export type FolderImports = ReadonlyMap<string, ReadonlyMap<string, string>>;

const relativeImport = /(?:from|import)\s*\(?\s*"(\.{1,2}\/[^"]+)"/g;

export function findCircles(sources: string): Circle[] {
  const imports = readFolderImports(sources);
  const reach = new Map([...imports.keys()].map((folder) => [folder, reachable(imports, folder)]));
  const circles: Circle[] = [];
  for (const [folder, reached] of reach) {
    if (!reached.has(folder) || circles.some(({ folders }) => folders.includes(folder))) continue;
    const folders = [...reached].filter((other) => reach.get(other)?.has(folder)).sort();
    const inside = folders.flatMap((from) =>
      [...(imports.get(from) ?? [])]
        .filter(([to]) => folders.includes(to))
        .map(([to, file]) => `${file} imports ${to}`),
    );
    circles.push({ folders, imports: inside });
  }
  return circles;
}

export function readFolderImports(sources: string): Map<string, Map<string, string>> {
  const imports = new Map<string, Map<string, string>>();
  for (const path of readdirSync(sources, { recursive: true, encoding: "utf8" })) {
    if (!/\.m?tsx?$/.test(path)) continue;
    const from = folderOf(path);
    const targets = imports.get(from) ?? new Map<string, string>();
    imports.set(from, targets);
    const text = readFileSync(join(sources, path), "utf8");
    for (const [, target = ""] of text.matchAll(relativeImport)) {
      const to = folderOf(relative(sources, join(sources, dirname(path), target)));
      if (to !== from && !to.startsWith("..")) targets.set(to, path);
    }
  }
  return imports;
}

function folderOf(path: string): string {
  const folder = dirname(path);
  return folder === "." ? path : folder;
}

/**
 * Returns the folders that a folder imports, directly or indirectly. It is one of them only if it is part of a circle.
 */
function reachable(imports: FolderImports, folder: string): Set<string> {
  const reached = new Set<string>();
  const next = [folder];
  for (const from of next)
    for (const to of imports.get(from)?.keys() ?? [])
      if (!reached.has(to)) {
        reached.add(to);
        next.push(to);
      }
  return reached;
}
