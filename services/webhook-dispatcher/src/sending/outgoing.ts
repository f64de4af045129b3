import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";

/** Headers and body of one attempt to deliver; the body is the delivery's payload, byte for byte. */
export function outgoing(options: {
  deliveryId: string;
  event: string;
  payload: string;
  /** When the attempt is made. */
  at: Date;
  secrets: SigningSecrets;
}): { headers: Record<string, string>; body: string } {
  const { deliveryId, event, payload, at, secrets } = options;
  return {
    body: payload,
    headers: {
      "Content-Type": "application/json",
      "User-Agent": userAgent,
      "X-Service-Event": event,
      "X-Service-Delivery": deliveryId,
      ...signatureHeaders({ body: payload, deliveryId, at, secrets }),
    },
  };
}

const { version } = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
) as { version: string };
const userAgent = `Halyard/${version}`;

/** The secrets that a delivery is signed with; the previous one only while it overlaps. */
export type SigningSecrets = { current: string | null; previous: string | null };

/**
 * The headers by which a receiver knows that a delivery is ours, unaltered and recent. Two schemes stand
 * side by side: a plain HMAC of the body in hexadecimal, and Standard Webhooks 1.0.0
 * (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md), which
 * signs the id and the time of the attempt as well and can be made with two secrets, so that a secret
 * can be replaced without a gap. Without a secret nothing is signed; id and time go all the same.
 */
export function signatureHeaders(input: {
  body: string;
  deliveryId: string;
  at: Date;
  secrets: SigningSecrets;
}): Record<string, string> {
  const { body, deliveryId, secrets } = input;
  const seconds = Math.floor(input.at.getTime() / 1000).toString();
  const identity = { "webhook-id": deliveryId, "webhook-timestamp": seconds };
  if (secrets.current === null) return identity;
  const standardSecrets = [secrets.current, secrets.previous].filter((secret) => secret !== null);
  return {
    ...identity,
    "webhook-signature": standardSecrets
      .map((secret) => standardSignature(secret, `${deliveryId}.${seconds}.${body}`))
      .join(" "),
    "X-Service-Signature": `sha256=${createHmac("sha256", secrets.current).update(body).digest("hex")}`,
  };
}

const standardSignature = (secret: string, content: string): string =>
  `v1,${createHmac("sha256", standardKey(secret)).update(content).digest("base64")}`;

const standardPrefix = "whsec_";
/** Base64 of at least one byte, padded or not: Node.js's own decoder would take any text. */
const base64Pattern = /^(?=.)(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;

/**
 * The key of a Standard Webhooks signature. That specification writes secrets as `whsec_` and the key in
 * base64; what does not have this form is the customer's own text and is taken as it is.
 */
function standardKey(secret: string): Buffer {
  const encoded = secret.startsWith(standardPrefix) ? secret.slice(standardPrefix.length) : "";
  return base64Pattern.test(encoded) ? Buffer.from(encoded, "base64") : Buffer.from(secret, "utf8");
}
