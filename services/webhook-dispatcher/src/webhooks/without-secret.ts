import { createHmac } from "node:crypto";
import { bearerToken } from "@halyard/api-keys";
import type { CreateWebhook } from "@halyard/contracts";
import type { RequestFacts } from "@halyard/service";

/**
 * The body as a repeated request is known by, of which a hash is kept. Everything in it but the secret is
 * in the database too, so a plain hash would let whoever reads that try out secrets. This one cannot be
 * made without the API key, which is not kept.
 */
export function withoutSecret(body: CreateWebhook, { headers }: RequestFacts): CreateWebhook {
  if (typeof body.secret !== "string") return body;
  const apiKey = bearerToken(headers.authorization) ?? "";
  return { ...body, secret: createHmac("sha256", apiKey).update(body.secret).digest("hex") };
}
