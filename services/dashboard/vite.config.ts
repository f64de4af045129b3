import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** Address of the Halyard that receives API requests from the development server. */
const gateway = process.env.HALYARD_URL ?? "http://127.0.0.1:8080";

/** Writes the compressed copies for browsers that accept them. */
const compressedCopies: Plugin = {
  name: "compressed-copies",
  async writeBundle({ dir = "" }, bundle) {
    await Promise.all(Object.keys(bundle).map((name) => compress(join(dir, name))));
  },
};

async function compress(path: string): Promise<void> {
  const plain = await readFile(path);
  const [br, gz] = await Promise.all([promisify(brotliCompress)(plain), promisify(gzip)(plain)]);
  // Images and fonts are compressed already.
  for (const [extension, copy] of Object.entries({ br, gz }))
    if (copy.length < plain.length) await writeFile(`${path}.${extension}`, copy);
}

export default defineConfig({
  plugins: [react(), compressedCopies],
  build: {
    target: "es2023",
    // The content security policy allows no `data:` URLs.
    assetsInlineLimit: 0,
    // Every asset has its hash in its name, so browsers keep it forever.
    assetsDir: "assets",
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1_000,
    // The licenses of the packages in the bundle require that copies contain them.
    license: { fileName: "third-party-licenses.md" },
  },
  server: {
    proxy: {
      "/api": gateway,
      "/openapi.json": gateway,
      "/docs": gateway,
      "/auth": gateway,
    },
  },
});
