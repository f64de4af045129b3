import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";

const acceptable = /^[\x21-\x7e]{1,128}$/;

/**
 * Takes over the caller's request id, or makes one. An id need not be a secret, only be unique, so a
 * random part per process and a counter do, at next to no cost per request.
 */
export function createRequestIds(): (request: Pick<IncomingMessage, "headers">) => string {
  const prefix = `${randomBytes(9).toString("base64url")}-`;
  let count = 0;
  return (request) => {
    const given = request.headers["x-request-id"];
    if (typeof given === "string" && acceptable.test(given)) return given;
    count += 1;
    return prefix + count.toString(36);
  };
}
