import { isUtf8 } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { createProblem } from "./answer.ts";
import { hasDuplicateMembers } from "./duplicate-members.ts";

/** The body is not JSON in UTF-8. The message is for the client and contains nothing of the body. */
export class BodySyntaxError extends Error {
  override readonly name = "BodySyntaxError";
}

/** The body has an unsupported encoding. */
export class BodyEncodingError extends Error {
  override readonly name = "BodyEncodingError";
}

/** Throws for a charset other than UTF-8, which JSON requires (RFC 8259), and for a compressed body. */
export function checkEncoding(headers: IncomingHttpHeaders): void {
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding.toLowerCase() !== "identity")
    throw new BodyEncodingError("The body must not be compressed");
  const charset = charsetOf(headers["content-type"] ?? "");
  if (charset !== undefined && charset !== "utf-8" && charset !== "utf8")
    throw new BodyEncodingError("The body must be JSON in UTF-8");
}

function charsetOf(contentType: string): string | undefined {
  return /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1]?.toLowerCase();
}

/** Decodes UTF-8. `toString` alone would replace invalid bytes by replacement characters. */
function decode(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new BodySyntaxError("The body is not valid UTF-8");
  return bytes.toString();
}

function parse(text: string): unknown {
  const value = parseSyntax(text);
  if (!hasDuplicateMembers(text, value)) return value;
  throw new BodySyntaxError("The body has an object with two members of the same name");
}

function parseSyntax(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new BodySyntaxError("The body is not valid JSON", { cause });
  }
}

/** Parses bytes of JSON in UTF-8. Throws a `BodySyntaxError` for other bytes. */
export function parseJsonBytes(bytes: Buffer): unknown {
  return parse(decode(bytes));
}

export const notJson = createProblem(
  "VALIDATION_003",
  "The body must be JSON, with Content-Type: application/json",
);
export const bodyTooLarge = createProblem("VALIDATION_002", "The body is too large");

const plainJson = /^application\/json\s*(?:$|;)/i;

/** Returns whether a content type is a JSON type. */
export function isJsonType(contentType: string): boolean {
  return plainJson.test(contentType) || structuredSuffix.test(contentType);
}

/**
 * Accepts only JSON bodies. `JSON.parse` makes a member named `__proto__` an own property, so that validation rejects
 * it like any other unknown member. An empty body counts as no body, which some routes accept.
 */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, readJson);
  app.addContentTypeParser(structuredSuffix, { parseAs: "buffer" }, readJson);
}

/**
 * Media types with the suffix `+json`, such as `application/merge-patch+json`, which `PATCH` implements. A JSON Patch
 * is a list of operations, which no route accepts.
 */
const structuredSuffix = /^application\/(?!json-patch\+json)[\w.-]+\+json\s*(?:$|;)/i;

function readJson(
  request: FastifyRequest,
  bytes: Buffer,
  done: (error: Error | null, body?: unknown) => void,
): void {
  try {
    checkEncoding(request.headers);
    done(null, bytes.length === 0 ? undefined : parseJsonBytes(bytes));
  } catch (error) {
    done(error as BodySyntaxError | BodyEncodingError);
  }
}
