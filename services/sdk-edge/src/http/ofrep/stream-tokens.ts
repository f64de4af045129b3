import { createHmac, timingSafeEqual } from "node:crypto";
import { ofrepStream } from "@halyard/contracts";

/**
 * The credentials of OFREP streams. A browser's `EventSource` sends no custom headers, so the credential is in the URL,
 * which can end up in browser histories and in access logs. It is therefore not the API key but a token that is derived
 * from it. The token reveals only that something changed, works for nothing else, and expires after a day, or with its
 * key.
 *
 * Every edge derives the same token for a key and an hour from the shared secret. A client can therefore evaluate on
 * one edge and open the stream on another, and edges store nothing.
 */
export type StreamTokens = {
  /**
   * Returns the member of a bulk evaluation that offers a stream, with a comma before it. The token stays the same for
   * one hour. The URL has no origin, so clients use the origin of their request, even behind proxies.
   */
  offer(keyId: string, nowMs: number): string;
  /**
   * Returns the id of the key that a token was derived from; undefined if the token is forged, expired or from the
   * future.
   */
  keyIdOf(token: string, nowMs: number): string | undefined;
};

const hourMs = 60 * 60 * 1_000;

/**
 * Lifetime of a token, from the beginning of its hour. So a token from the end of an hour is valid for 23 hours more.
 */
export const tokenLifetimeMs = 24 * hourMs;

/** Maximum difference between the clocks of two edges. */
export const clockSkewMs = 5 * 60 * 1_000;

/** Part of the signed text. It separates tokens from anything else that is signed with the same secret. */
const purpose = "halyard ofrep stream";

const shape = /^([a-z2-7]{16})\.(\d{1,10})\.([A-Za-z0-9_-]{43})$/;

/**
 * Maximum number of cached offers, far more than the keys that one edge serves in an hour. Beyond it, offers are
 * created again.
 */
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
      // Compares the texts and not the decoded bytes, because several texts decode to the same bytes and only one of
      // them is valid. Both texts have the same length, which `shape` requires.
      const expected = Buffer.from(signatureOf(keyId, hour), "latin1");
      return timingSafeEqual(Buffer.from(signature, "latin1"), expected) ? keyId : undefined;
    },
  };
}
