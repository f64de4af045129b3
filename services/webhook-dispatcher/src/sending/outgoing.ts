import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import type { TraceContext } from "@halyard/tracing";

/** Returns the headers and the body of one attempt. The body is the delivery's payload, byte for byte. */
export function outgoing(options: {
  deliveryId: string;
  event: string;
  payload: string;
  /** Time of the attempt. */
  at: Date;
  secrets: SigningSecrets;
  /** The span of the attempt, if the webhook wants its context. */
  trace?: TraceContext | undefined;
}): { headers: Record<string, string>; body: string } {
  const { deliveryId, event, payload, at, secrets, trace } = options;
  return {
    body: payload,
    headers: {
      "Content-Type": "application/json",
      "User-Agent": userAgent,
      "X-Service-Event": event,
      "X-Service-Delivery": deliveryId,
      ...signatureHeaders({ body: payload, deliveryId, at, secrets }),
      ...trace,
    },
  };
}

const { version } = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
) as { version: string };
const userAgent = `Halyard/${version}`;

/** The secrets that sign a delivery. `previous` is set during the overlap of a rotation only. */
export type SigningSecrets = { current: string | null; previous: string | null };

/**
 * Returns the headers that prove a delivery authentic, unaltered and recent. There are two schemes:
 *
 * - A plain HMAC of the body in hexadecimal.
 * - Standard Webhooks 1.0.0
 *   (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md). It also signs the id
 *   and the time of the attempt, and supports two secrets, so a rotation has no gap.
 *
 * Without a secret, the headers contain only the id and the time.
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
/** Base64 of at least one byte, with or without padding. The decoder of Node.js accepts any text. */
const base64Pattern = /^(?=.)(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;

/**
 * Returns the key of a Standard Webhooks signature. The specification writes secrets as `whsec_` and the key in base64.
 * A secret in any other form is the key itself, in UTF-8.
 */
function standardKey(secret: string): Buffer {
  const encoded = secret.startsWith(standardPrefix) ? secret.slice(standardPrefix.length) : "";
  return base64Pattern.test(encoded) ? Buffer.from(encoded, "base64") : Buffer.from(secret, "utf8");
}
