import { isUtf8 } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { createProblem } from "./answer.ts";
import { hasDuplicateMembers } from "./duplicate-members.ts";

/** The body is not JSON in UTF-8. The message is for the caller and repeats nothing of the body. */
export class BodySyntaxError extends Error {
  override readonly name = "BodySyntaxError";
}

/** The body is encoded in a way that is not read here. */
export class BodyEncodingError extends Error {
  override readonly name = "BodyEncodingError";
}

/** JSON is UTF-8 (RFC 8259); another charset, or compression, is refused rather than misread. */
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

/** `toString` would turn bytes that are not UTF-8 into replacement characters. */
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

/** The value that bytes of JSON in UTF-8 say; throws a `BodySyntaxError` for other bytes. */
export function parseJsonBytes(bytes: Buffer): unknown {
  return parse(decode(bytes));
}

export const notJson = createProblem(
  "VALIDATION_003",
  "The body must be JSON, with Content-Type: application/json",
);
export const bodyTooLarge = createProblem("VALIDATION_002", "The body is too large");

const plainJson = /^application\/json\s*(?:$|;)/i;

/** Whether a content type says that the body is JSON. */
export function isJsonType(contentType: string): boolean {
  return plainJson.test(contentType) || structuredSuffix.test(contentType);
}

/**
 * JSON is the only kind of body. `JSON.parse` makes a field named `__proto__` an own property like
 * any other, so that validation sees it; it is never copied by assignment. An empty body counts as
 * none at all: whether that will do is the route's business.
 */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, readJson);
  app.addContentTypeParser(structuredSuffix, { parseAs: "buffer" }, readJson);
}

/**
 * Media types that are JSON under another name, such as `application/merge-patch+json`, which has the
 * meaning of our `PATCH`. A JSON Patch is a list of operations, which no route takes.
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
