import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A web site with one page and its script, on another origin than the edge. */
export type Site = { url: string; close(): Promise<void> };

export async function startSite(script: string): Promise<Site> {
  const server = createServer((request, response) => {
    const isScript = request.url === "/page.js";
    response.writeHead(200, { "content-type": isScript ? "text/javascript" : "text/html" });
    response.end(
      isScript
        ? script
        : '<!doctype html><meta charset="utf-8"><title>A page</title><link rel="icon" href="data:,"><main></main><script type="module" src="/page.js"></script>',
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}/`,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
