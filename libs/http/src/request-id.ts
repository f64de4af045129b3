import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";

const acceptable = /^[\x21-\x7e]{1,128}$/;

/**
 * Returns a function that returns the client's request id, or a new one. Ids must be unique but not secret, so a random
 * prefix for the process and a counter suffice, at almost no cost per request.
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
