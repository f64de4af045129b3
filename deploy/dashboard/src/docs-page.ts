import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { App } from "@halyard/http";
import type { Logger } from "@halyard/service";
import { pageHeaders } from "./page-headers.ts";
import { withReadersIds } from "./readers-ids.ts";

/**
 * The documentation page, which shows the OpenAPI document. All its parts come from this process; the content security
 * policy blocks requests to other origins.
 */
const html = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Halyard API</title>
    <link rel="stylesheet" href="/docs/swagger-ui.css">
    <link rel="icon" type="image/png" href="/docs/favicon-32x32.png">
  </head>
  <body>
    <div id="swagger-ui"></div>
    <script src="/docs/swagger-ui-bundle.js"></script>
    <script src="/docs/start.js"></script>
  </body>
</html>
`;

const startScript = `SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
});
`;

type Served = { path: string; type: string; content: string | Buffer };

export type DocsOptions = { demoFile?: string | undefined; logger: Logger };

const openApiFile = new URL("../../../docs/openapi.json", import.meta.url);

async function loadFiles(): Promise<Served[]> {
  const library = dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"));
  const asset = async (name: string, type: string): Promise<Served> => ({
    path: `/docs/${name}`,
    type,
    content: await readFile(join(library, name)),
  });
  const page = { type: "text/html; charset=utf-8", content: html };
  return [
    { path: "/docs", ...page },
    { path: "/docs/", ...page },
    { path: "/docs/start.js", type: "text/javascript; charset=utf-8", content: startScript },
    await asset("swagger-ui.css", "text/css; charset=utf-8"),
    await asset("swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
    await asset("favicon-32x32.png", "image/png"),
  ];
}

/** Inline styles are allowed, because Swagger UI uses them. Inline scripts are not. */
const commonHeaders = { ...pageHeaders(["unsafe-inline"]), "cache-control": "no-cache" };

export async function registerDocs(app: App, { demoFile, logger }: DocsOptions): Promise<void> {
  const document = await readFile(openApiFile, "utf8");
  app.get("/openapi.json", async (_request, reply) => {
    reply.headers({ ...commonHeaders, "content-type": "application/json" });
    if (demoFile === undefined) return document;
    return withReadersIds(JSON.parse(document), { demoFile, logger });
  });
  for (const { path, type, content } of await loadFiles()) {
    app.get(path, (_request, reply) => {
      reply.headers({ ...commonHeaders, "content-type": type }).send(content);
    });
  }
}
