import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { build } from "esbuild";
import { port, readDemo } from "./config.ts";
import { provideFlags } from "./demo-flags.ts";

/**
 * Bundles a script and serves it in a page. The page gets the address and the client key as `halyardOptions`; the server
 * key stays here.
 */
export async function servePage({ script, title }: { script: URL; title: string }): Promise<void> {
  const demo = readDemo();
  await provideFlags(demo);
  const { outputFiles } = await build({
    entryPoints: [script.pathname],
    ...{ bundle: true, write: false, format: "esm", jsx: "automatic" },
    // Only in this repository: the packages are bundled from their sources.
    conditions: ["halyard-source"],
  });
  const options = JSON.stringify({ baseUrl: demo.baseUrl, clientKey: demo.clientKey });
  const html = `<!doctype html>
<html lang="en">
  <meta charset="utf-8">
  <title>${title}</title>
  <style>body { font: 1.1rem system-ui; margin: 3rem } output { font-weight: bold }</style>
  <main></main>
  <script>globalThis.halyardOptions = ${options};</script>
  <script type="module" src="/page.js"></script>
</html>`;
  const server = createServer((request, response) => {
    const isScript = request.url === "/page.js";
    response.writeHead(200, { "content-type": isScript ? "text/javascript" : "text/html" });
    response.end(isScript ? outputFiles[0]?.contents : html);
  });
  server.listen(port, () => {
    const { port: opened } = server.address() as AddressInfo;
    console.log(`Open http://localhost:${opened}`);
    console.log("Then run in another terminal: npm run toggle --workspace clients/examples");
  });
}
