import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

/**
 * Replaces the exports of client modules by references, like the bundlers that know React's server components. A client
 * module has the directive `"use client"` before its first statement, where esbuild recognizes and keeps it.
 */
registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!url.includes("/node_modules/@halyard/")) return loaded;
    const { outputFiles, metafile } = buildSync({
      ...{ entryPoints: [fileURLToPath(url)], outfile: "module.js", write: false, metafile: true },
      ...{ bundle: true, packages: "external", format: "esm" },
    });
    if (!outputFiles[0].text.startsWith('"use client";')) return loaded;
    const names = Object.values(metafile.outputs).flatMap((output) => output.exports);
    const references = names.map((name) => `export const ${name} = "client reference";\n`);
    return { format: "module", source: references.join(""), shortCircuit: true };
  },
});
