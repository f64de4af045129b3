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
