const prefix = "whsec_";
/** Base64 of at least one byte, padded or not: Node.js's own decoder would take any text. */
const base64Pattern = /^(?=.)(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;

/**
 * The key of a Standard Webhooks signature. That specification writes secrets as `whsec_` and the key in
 * base64; any other text is the customer's own, and its bytes are the key. So are those of a text that only
 * begins like the specification's: none is taken any more, but some may be stored from before.
 */
export function standardKey(secret: string): Buffer {
  const encoded = secret.startsWith(prefix) ? secret.slice(prefix.length) : "";
  return base64Pattern.test(encoded) ? Buffer.from(encoded, "base64") : Buffer.from(secret, "utf8");
}

/** Begins as the specification's secrets do, and holds no key: receivers' libraries cannot read it. */
export function lacksStandardKey(secret: string): boolean {
  return secret.startsWith(prefix) && !base64Pattern.test(secret.slice(prefix.length));
}
