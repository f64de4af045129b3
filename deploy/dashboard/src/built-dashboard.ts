import { existsSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import fastifyStatic from "@fastify/static";
import type { App } from "@halyard/http";
import type { Logger } from "@halyard/service";
import type { FastifyRequest } from "fastify";
import { pageHeaders } from "./page-headers.ts";

/**
 * The dashboard: one page whose router in the browser interprets the path, and its assets. Browsers receive the page
 * for every path that the API does not use. API clients do not accept HTML, and receive 404 as before.
 */
export type DashboardOptions = {
  /** Folder of the built dashboard. Without one, browsers are redirected from `/` to the documentation. */
  dashboardDir?: string | undefined;
  logger: Logger;
};

/**
 * Hashes of the only styles that scripts of the page add: those of React Aria's `usePress` and, in Safari on iOS,
 * `usePreventScroll`. A test computes them from the package.
 */
const styleHashes = [
  "sha256-38RhXrc7EdReTKsOm23ZPOCUgniTUUcjky8QOOrQx6o=",
  "sha256-gYiS/BvZvRcK27JIXTuwhZ3hs2+VJ1X+2gUlE+farlg=",
];

const headers = pageHeaders(styleHashes);

const pageName = "index.html";

const revalidated = "no-cache";

/**
 * Browsers always receive the whole page. Its ETag would consist of its size and its time, and both may be those of an
 * earlier build, because names of assets have the same length and some builds of images set all times to 0.
 */
const withoutValidators = { etag: false, lastModified: false };

/** Assets have their hash in their name. */
const immutable = "public, max-age=31536000, immutable";

/** First segments of paths that are not the dashboard's. Unknown paths below them are errors of the client. */
const otherPrefixes: ReadonlySet<string> = new Set([
  "api",
  "ofrep",
  "auth",
  "docs",
  "openapi.json",
  "healthz",
  "readyz",
  "metrics",
  "assets",
  "dashboard",
]);

export async function registerDashboard(
  app: App,
  { dashboardDir, logger }: DashboardOptions,
): Promise<void> {
  if (dashboardDir === undefined) return registerRedirect(app);
  if (!existsSync(join(dashboardDir, pageName))) {
    logger.warn({ dashboard_dir: dashboardDir }, "no dashboard: the folder has no index.html");
    return registerRedirect(app);
  }
  await registerFiles(app, resolve(dashboardDir));
}

/**
 * Registers a route for each file that the folder contains now, so that a request cannot name another file. The build
 * writes the compressed copies.
 */
async function registerFiles(app: App, root: string): Promise<void> {
  const assets = join(root, "assets") + sep;
  await app.register(fastifyStatic, {
    root,
    wildcard: false,
    index: false,
    globIgnore: [pageName, "**/*.br", "**/*.gz"],
    preCompressed: true,
    cacheControl: false,
    setHeaders(reply, path) {
      reply.header("cache-control", path.startsWith(assets) ? immutable : revalidated);
    },
  });
  app.get("/*", (request, reply) => {
    reply.header("vary", "Accept");
    if (!isForBrowser(request)) return reply.callNotFound();
    return reply.headers(headers).sendFile(pageName, withoutValidators);
  });
}

function isForBrowser(request: FastifyRequest): boolean {
  return acceptsHtml(request) && !otherPrefixes.has(request.url.split(/[/?]/)[1] ?? "");
}

function acceptsHtml({ headers }: FastifyRequest): boolean {
  return headers.accept?.includes("text/html") === true;
}

/** Redirects browsers from `/` to the documentation. Other clients receive 404, because the API has no route `/`. */
function registerRedirect(app: App): void {
  app.get("/", (request, reply) => {
    reply.header("vary", "Accept");
    if (!acceptsHtml(request)) return reply.callNotFound();
    return reply.header("cache-control", revalidated).redirect("/docs");
  });
}
