import { createHmac, timingSafeEqual } from "node:crypto";
import { ofrepStream } from "@halyard/contracts";

/**
 * What opens an OFREP stream. A browser's `EventSource` sends no headers of its own, so the right to
 * read stands in the URL, where it may end up in histories and in the logs of others. It is therefore
 * not the API key but a token that is made from it: it tells that something changed and nothing more,
 * is of no use anywhere else, and ends after a day, or with its key.
 *
 * Every edge makes the same token for a key and an hour from the secret that they share, so that a
 * client may ask one edge and listen to another, and nothing needs to be stored.
 */
export type StreamTokens = {
  /**
   * Returns the member of a bulk evaluation that offers a stream, with a comma before it. The token is the same during
   * one hour. The URL has no origin, which for clients means the origin of their request, behind any proxies.
   */
  offer(keyId: string, nowMs: number): string;
  /** The id of the key that a token was made from, unless it is forged, too old or from the future. */
  keyIdOf(token: string, nowMs: number): string | undefined;
};

const hourMs = 60 * 60 * 1_000;

/** Counted from the beginning of its hour; so the last token of an hour is good for 23 hours more. */
export const tokenLifetimeMs = 24 * hourMs;

/** How far the clocks of two edges may be apart. */
export const clockSkewMs = 5 * 60 * 1_000;

/** Whatever else may be signed with the secret one day is not a token, and a token is nothing else. */
const purpose = "halyard ofrep stream";

const shape = /^([a-z2-7]{16})\.(\d{1,10})\.([A-Za-z0-9_-]{43})$/;

/** Far more keys than one edge serves in an hour; beyond that a token is just made anew. */
const maxCachedOffers = 10_000;

export function createStreamTokens(secret: string): StreamTokens {
  const offers = new Map<string, string>();
  let hourOfOffers = Number.NaN;

  function signatureOf(keyId: string, hour: string): string {
    return createHmac("sha256", secret).update(`${purpose}\n${keyId}\n${hour}`).digest("base64url");
  }

  return {
    offer(keyId, nowMs) {
      const hour = Math.floor(nowMs / hourMs);
      if (hour !== hourOfOffers || offers.size >= maxCachedOffers) {
        offers.clear();
        hourOfOffers = hour;
      }
      let offer = offers.get(keyId);
      if (offer === undefined) {
        const token = `${keyId}.${hour}.${signatureOf(keyId, String(hour))}`;
        const requestUri = `${ofrepStream.path}?token=${token}`;
        offer = `,"eventStreams":${JSON.stringify([{ type: "sse", endpoint: { requestUri } }])}`;
        offers.set(keyId, offer);
      }
      return offer;
    },

    keyIdOf(token, nowMs) {
      const [, keyId, hour, signature] = shape.exec(token) ?? [];
      if (keyId === undefined || hour === undefined || signature === undefined) return undefined;
      const beginMs = Number(hour) * hourMs;
      if (nowMs >= beginMs + tokenLifetimeMs || nowMs < beginMs - clockSkewMs) return undefined;
      // The texts are compared, not the bytes that they stand for: of several texts for the same
      // bytes only ours counts. Both are of one length, by the shape.
      const expected = Buffer.from(signatureOf(keyId, hour), "latin1");
      return timingSafeEqual(Buffer.from(signature, "latin1"), expected) ? keyId : undefined;
    },
  };
}
