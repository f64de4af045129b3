import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

/** A content coding that Halyard compresses with. */
export type CompressedCoding = "br" | "gzip";

/** The codings in the order of preference, for clients that accept several of them equally. */
const codings: readonly CompressedCoding[] = ["br", "gzip"];

/**
 * Returns the preferred coding of `Accept-Encoding` (RFC 9110, section 12.5.3); undefined for an uncompressed response.
 * Only codings that the client names count, because an uncompressed response is always acceptable.
 */
export function chooseCoding(acceptEncoding: string | undefined): CompressedCoding | undefined {
  if (acceptEncoding === undefined) return undefined;
  const weights = new Map(acceptEncoding.split(",").map(readElement));
  let chosen: CompressedCoding | undefined;
  let highest = 0;
  for (const coding of codings) {
    const weight = weights.get(coding) ?? 0;
    if (weight > highest) [chosen, highest] = [coding, weight];
  }
  return chosen;
}

/** Returns the coding and the weight of an element. An invalid weight counts as 0. */
function readElement(element: string): [coding: string, weight: number] {
  const [coding = "", ...parameters] = element.toLowerCase().split(";");
  const given = parameters.map((one) => one.trim()).find((one) => one.startsWith("q="));
  const weight = given === undefined ? 1 : Number(given.slice("q=".length));
  return [coding.trim(), weight >= 0 && weight <= 1 ? weight : 0];
}

const compressGzip = promisify(gzip);
const compressBrotli = promisify(brotliCompress);

const gzipLevel = 6;
const brotliQuality = 4;

/** Compresses bytes in another thread. */
export function compress(coding: CompressedCoding, parts: readonly Buffer[]): Promise<Buffer> {
  const bytes = Buffer.concat(parts);
  if (coding === "gzip") return compressGzip(bytes, { level: gzipLevel });
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: brotliQuality,
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
  };
  return compressBrotli(bytes, { params });
}
