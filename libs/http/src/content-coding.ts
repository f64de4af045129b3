import { pipeline, Readable } from "node:stream";
import { promisify } from "node:util";
import { createGzip, gzip } from "node:zlib";

/**
 * Returns whether `Accept-Encoding` names gzip (RFC 9110, section 12.5.3). An uncompressed response is always
 * acceptable, so `*` does not count.
 */
export function acceptsGzip(acceptEncoding: string | undefined): boolean {
  return acceptEncoding?.split(",").some(isAcceptedGzip) ?? false;
}

/** Returns whether an element of the header is gzip with a weight above 0. An invalid weight counts as 0. */
function isAcceptedGzip(element: string): boolean {
  const [coding = "", ...parameters] = element.toLowerCase().split(";");
  const given = parameters.map((one) => one.trim()).find((one) => one.startsWith("q="));
  const weight = given === undefined ? 1 : Number(given.slice("q=".length));
  return coding.trim() === "gzip" && weight > 0 && weight <= 1;
}

/** Minimum size of a compressed body, in bytes. A smaller one fits into one packet either way. */
export const minCompressedBytes = 1024;

export const compress: (body: string | Buffer) => Promise<Buffer> = promisify(gzip);

/** Compresses a body in parts. A failure of a part destroys the stream with the error. */
export function compressParts(parts: AsyncIterable<string>): Readable {
  return pipeline(Readable.from(parts), createGzip(), () => {
    // The reader of the stream receives the error.
  });
}
