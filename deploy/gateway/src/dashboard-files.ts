import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname, join, relative, sep } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

/** The built dashboard in memory. A request only selects a file by its path, so it cannot name any other file. */
export type DashboardFiles = {
  /** The page, for every path that the router in the browser interprets. */
  page: DashboardFile;
  /** The other files, by path, such as `/assets/index-B9R5L73L.js`. */
  others: ReadonlyMap<string, DashboardFile>;
};

export type DashboardFile = { type: string; plain: Content; encoded: readonly EncodedContent[] };

/** Each encoding has its own ETag, because a strong ETag identifies the exact bytes. */
type Content = { etag: string; body: Buffer };
export type EncodedContent = Content & { encoding: "br" | "gzip" };

/** The formats that Vite writes. Browsers reject scripts and styles of another type. */
const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
  ".webmanifest": "application/manifest+json",
  ".json": "application/json",
  ".txt": "text/plain; charset=utf-8",
};

/** Quality 11 would delay the start of the gateway by seconds, for files that are a tenth smaller. */
const brotliQuality = 5;

const pageName = "index.html";

/**
 * Reads and compresses all files of a folder. Returns undefined if it contains no dashboard. The folder is read once,
 * so that page and assets always belong to the same build.
 */
export async function readDashboard(folder: string): Promise<DashboardFiles | undefined> {
  const page = await readPage(join(folder, pageName));
  if (page === undefined) return undefined;
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const others = await Promise.all(
    paths
      .map((path) => ({ path, name: relative(folder, path).split(sep).join("/") }))
      .filter(({ name }) => name !== pageName)
      .map(
        async ({ path, name }) => [`/${name}`, await toFile(path, await readFile(path))] as const,
      ),
  );
  return { page: await toFile(pageName, page), others: new Map(others) };
}

async function readPage(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}

async function toFile(path: string, plain: Buffer): Promise<DashboardFile> {
  const [br, gzipped] = await Promise.all([compressWithBrotli(plain), compressWithGzip(plain)]);
  const encoded = [
    { encoding: "br" as const, ...toContent(br) },
    { encoding: "gzip" as const, ...toContent(gzipped) },
  ];
  return {
    type: types[extname(path)] ?? "application/octet-stream",
    plain: toContent(plain),
    // Images and fonts are compressed already.
    encoded: encoded.filter(({ body }) => body.length < plain.length),
  };
}

const compressWithGzip = promisify<Buffer, Buffer>(gzip);

function compressWithBrotli(body: Buffer): Promise<Buffer> {
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: brotliQuality,
    [constants.BROTLI_PARAM_SIZE_HINT]: body.length,
  };
  return promisify(brotliCompress)(body, { params });
}

function toContent(body: Buffer): Content {
  const hash = createHash("sha256").update(body).digest("base64url");
  return { etag: `"${hash}"`, body };
}
