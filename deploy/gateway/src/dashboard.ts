import { type App, type Logger, namesTag } from "@halyard/service";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type DashboardFile, type DashboardFiles, readDashboard } from "./dashboard-files.ts";

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

const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  `style-src 'self' ${styleHashes.map((hash) => `'${hash}'`).join(" ")}`,
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const pageHeaders = {
  "content-security-policy": contentSecurityPolicy,
  "cross-origin-opener-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
};

const revalidated = "no-cache";

/** Assets have their hash in their name. */
const immutable = "public, max-age=31536000, immutable";

/** First segments of paths that are not the dashboard's. Unknown paths below them are errors of the client. */
const otherPrefixes: ReadonlySet<string> = new Set([
  "api",
  "ofrep",
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
  const files = await readDashboard(dashboardDir);
  if (files === undefined) {
    logger.warn({ dashboard_dir: dashboardDir }, "no dashboard: the folder has no index.html");
    return registerRedirect(app);
  }
  registerFiles(app, files);
}

function registerFiles(app: App, { page, others }: DashboardFiles): void {
  app.get("/assets/*", (request, reply) => {
    const asset = others.get(pathOf(request));
    if (asset === undefined) return reply.callNotFound();
    return sendFile(request, reply.header("cache-control", immutable), asset);
  });
  app.get("/*", (request, reply) => {
    const path = pathOf(request);
    const file = others.get(path);
    if (file !== undefined)
      return sendFile(request, reply.header("cache-control", revalidated), file);
    reply.header("vary", "Accept");
    if (!isForBrowser(request, path)) return reply.callNotFound();
    return sendFile(request, reply.headers({ ...pageHeaders, "cache-control": revalidated }), page);
  });
}

/** Returns the path as it was sent. Names of assets need no escapes, so an escaped path is no asset. */
function pathOf({ url }: FastifyRequest): string {
  return url.split("?", 1)[0] ?? "";
}

function isForBrowser(request: FastifyRequest, path: string): boolean {
  return acceptsHtml(request) && !otherPrefixes.has(path.split("/")[1] ?? "");
}

function acceptsHtml({ headers }: FastifyRequest): boolean {
  return headers.accept?.includes("text/html") === true;
}

function sendFile(request: FastifyRequest, reply: FastifyReply, file: DashboardFile): FastifyReply {
  const accepted = acceptedEncodings(request.headers["accept-encoding"]);
  const encoded = file.encoded.find(({ encoding }) => accepted.has(encoding));
  const { etag, body } = encoded ?? file.plain;
  addToVary(reply, "Accept-Encoding");
  reply.header("etag", etag);
  if (namesTag(request.headers["if-none-match"] ?? "", etag)) return reply.code(304).send();
  if (encoded !== undefined) reply.header("content-encoding", encoded.encoding);
  return reply.header("content-type", file.type).send(body);
}

function addToVary(reply: FastifyReply, name: string): void {
  const present = reply.getHeader("vary");
  reply.header("vary", present === undefined ? name : `${present}, ${name}`);
}

/** Returns the named encodings, without those that the weight 0 excludes (RFC 9110, section 12.5.3). */
function acceptedEncodings(header: string | string[] | undefined): ReadonlySet<string> {
  const items = String(header ?? "")
    .toLowerCase()
    .split(",");
  const isExcluded = (item: string) => /;\s*q=0(?:\.0*)?\s*$/.test(item);
  return new Set(
    items.filter((item) => !isExcluded(item)).map((item) => (item.split(";", 1)[0] ?? "").trim()),
  );
}

/** Redirects browsers from `/` to the documentation. Other clients receive 404, because the API has no route `/`. */
function registerRedirect(app: App): void {
  app.get("/", (request, reply) => {
    reply.header("vary", "Accept");
    if (!acceptsHtml(request)) return reply.callNotFound();
    return reply.header("cache-control", revalidated).redirect("/docs");
  });
}
