import { readFileSync } from "node:fs";
import { type SigningSecrets, signatureHeaders } from "../signing/sign.ts";

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
