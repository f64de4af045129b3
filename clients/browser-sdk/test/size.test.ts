import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { expect, it } from "@jest/globals";
import { build } from "esbuild";

it("is smaller than 5 kB, bundled, minified and compressed", async () => {
  const { outputFiles } = await build({
    stdin: {
      contents: 'import { createClient } from "./src/index.ts"; globalThis.flags = createClient;',
      resolveDir: fileURLToPath(new URL("..", import.meta.url)),
    },
    ...{ bundle: true, minify: true, write: false, format: "esm", target: "es2022" },
  });
  const bytes = gzipSync(outputFiles[0]?.contents ?? "", { level: 9 }).length;
  expect(bytes).toBeGreaterThan(1_000);
  expect(bytes).toBeLessThan(5_000);
});
