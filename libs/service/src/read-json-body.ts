import type { IncomingMessage } from "node:http";
import { createProblem, type Problem } from "./answer.ts";
import {
  BodyEncodingError,
  BodySyntaxError,
  bodyTooLarge,
  checkEncoding,
  isJsonType,
  notJson,
  parseJsonBytes,
} from "./json-body.ts";

/** The value in a body; undefined for an empty or missing body. */
export type BodyReading = { body: unknown } | Problem;

/**
 * Reads a JSON body for a route of an edge. The framework's parser would cost a tenth of the response to a POST
 * (`npm run bench -- targeting`). This one accepts and rejects the same bodies, including those of GET.
 *
 * It calls `done` once, or never if the client aborts the request. Node discards unread bytes after the response is
 * sent.
 */
export function readJsonBody(
  request: IncomingMessage,
  limitBytes: number,
  done: (reading: BodyReading) => void,
): void {
  if (!announcesBody(request)) {
    done({ body: undefined });
    return;
  }
  const { headers } = request;
  const length = headers["content-length"];
  const isJson = isJsonType(headers["content-type"] ?? "");
  if (!isJson && length !== undefined) done(notJson);
  // Only the end of a chunked body shows whether it is empty.
  else if (!isJson)
    collect(request, 0, (bytes) => done(bytes === undefined ? notJson : { body: undefined }));
  else if (length !== undefined && Number(length) > limitBytes) done(bodyTooLarge);
  else
    collect(request, limitBytes, (bytes) =>
      done(bytes === undefined ? bodyTooLarge : read(request, bytes)),
    );
}

/** Returns whether the headers announce a body, which may be empty. */
export function announcesBody({ headers }: IncomingMessage): boolean {
  const length = headers["content-length"];
  return (length !== undefined && length !== "0") || headers["transfer-encoding"] !== undefined;
}

/** Calls `done` with all bytes, or with undefined if they exceed the limit. */
function collect(
  request: IncomingMessage,
  limitBytes: number,
  done: (bytes: Buffer | undefined) => void,
): void {
  const chunks: Buffer[] = [];
  let received = 0;
  let isOver = false;
  request.on("data", (chunk: Buffer) => {
    if (isOver) return;
    received += chunk.length;
    chunks.push(chunk);
    if (received <= limitBytes) return;
    isOver = true;
    done(undefined);
  });
  request.on("end", () => {
    if (!isOver) done(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, received));
  });
  // An aborted request also fails its stream. The server has handled it already.
  request.on("error", () => undefined);
}

function read(request: IncomingMessage, bytes: Buffer): BodyReading {
  try {
    checkEncoding(request.headers);
    return { body: bytes.length === 0 ? undefined : parseJsonBytes(bytes) };
  } catch (error) {
    if (error instanceof BodySyntaxError) return createProblem("VALIDATION_001", error.message);
    if (error instanceof BodyEncodingError) return createProblem("VALIDATION_003", error.message);
    throw error;
  }
}
