import { isUtf8 } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { createProblem, isProblem, type Problem } from "./answer.ts";
import { hasDuplicateMembers } from "./duplicate-members.ts";
import { keepText } from "./raw-json.ts";

/** The value in a body; undefined for an empty or missing body. */
export type BodyReading = { body: unknown } | Problem;

/** A body is not JSON in UTF-8, or is encoded. */
export class BodyError extends Error {
  override readonly name = "BodyError";
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.message);
    this.problem = problem;
  }
}

export const notJson = createProblem(
  "VALIDATION_003",
  "The body must be JSON, with Content-Type: application/json",
);
export const bodyTooLarge = createProblem("VALIDATION_002", "The body is too large");
const compressed = createProblem("VALIDATION_003", "The body must not be compressed");
const otherCharset = createProblem("VALIDATION_003", "The body must be in UTF-8");
const notUtf8 = createProblem("VALIDATION_001", "The body is not valid UTF-8");
const badSyntax = createProblem("VALIDATION_001", "The body is not valid JSON");
const duplicateMembers = createProblem(
  "VALIDATION_001",
  "The body has an object with two members of the same name",
);

const plainJson = /^application\/json\s*(?:$|;)/i;

/**
 * Media types with the suffix `+json`, such as `application/merge-patch+json`, which `PATCH` implements. A JSON Patch
 * is a list of operations, which no route accepts.
 */
const structuredSuffix = /^application\/(?!json-patch\+json)[\w.-]+\+json\s*(?:$|;)/i;

/** Returns whether a `Content-Type` is one of the types that `acceptJsonBodies` accepts. */
export function isJsonType(contentType: string): boolean {
  return plainJson.test(contentType) || structuredSuffix.test(contentType);
}

/**
 * Accepts only JSON bodies. `JSON.parse` makes a member named `__proto__` an own property, so that validation rejects
 * it like any other unknown member. An empty body counts as no body, which some routes accept.
 */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  for (const type of ["application/json", structuredSuffix])
    app.addContentTypeParser(type, { parseAs: "buffer" }, parse);
}

function parse(
  { headers }: FastifyRequest,
  bytes: Buffer,
  done: (error: Error | null, body?: unknown) => void,
): void {
  const reading = parseJsonBody(headers, bytes);
  if (isProblem(reading)) done(new BodyError(reading));
  else {
    keepText(reading.body, bytes.toString());
    done(null, reading.body);
  }
}

/** Parses the bytes of a body. JSON requires UTF-8 (RFC 8259). */
export function parseJsonBody(headers: IncomingHttpHeaders, bytes: Buffer): BodyReading {
  const problem = checkEncoding(headers);
  if (problem !== undefined) return problem;
  if (bytes.length === 0) return { body: undefined };
  // `toString` alone would replace invalid bytes by replacement characters.
  if (!isUtf8(bytes)) return notUtf8;
  const text = bytes.toString();
  try {
    const body: unknown = JSON.parse(text);
    return hasDuplicateMembers(text, body) ? duplicateMembers : { body };
  } catch {
    return badSyntax;
  }
}

/** Rejects a compressed body, and one in another charset than UTF-8. */
export function checkEncoding(headers: IncomingHttpHeaders): Problem | undefined {
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding.toLowerCase() !== "identity") return compressed;
  const charset = charsetOf(headers["content-type"] ?? "");
  if (charset !== undefined && charset !== "utf-8" && charset !== "utf8") return otherCharset;
  return undefined;
}

function charsetOf(contentType: string): string | undefined {
  return /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1]?.toLowerCase();
}
