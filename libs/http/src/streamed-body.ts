import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import type { FastifyInstance } from "fastify";
import { createProblem, type Problem } from "./answer.ts";
import { BodyError, checkEncoding } from "./json-body.ts";

/**
 * Accepts only bodies of some media types, in UTF-8, and leaves them unread. The handler reads them as streams. No limit of
 * the application applies to their size.
 */
export function acceptStreams(scope: FastifyInstance, types: readonly string[]): void {
  scope.removeAllContentTypeParsers();
  const otherType = createProblem(
    "VALIDATION_003",
    `The body must have the Content-Type ${types.join(" or ")}`,
  );
  const pass =
    (checkHeaders: (headers: IncomingHttpHeaders) => Problem | undefined) =>
    (
      { headers }: { headers: IncomingHttpHeaders },
      stream: Readable,
      done: (error: Error | null, body?: Readable) => void,
    ) => {
      const problem = checkHeaders(headers);
      if (problem === undefined) done(null, stream);
      else done(new BodyError(problem));
    };
  for (const type of types) scope.addContentTypeParser(type, pass(checkEncoding));
  scope.addContentTypeParser(
    "*",
    pass(() => otherType),
  );
}
