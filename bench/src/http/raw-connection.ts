import { connect } from "node:net";
import { type RequestPlan, requestBytes } from "./requests.ts";

/**
 * A minimal keep-alive connection with one request in flight, so that the load generator is not the
 * bottleneck. It sends prepared bytes and parses only the status and the end of a response.
 */
export type RawConnection = { send(request: Buffer): void; close(): void };

type Handlers = {
  onOpen: () => void;
  /** The bytes are valid only during the call. */
  onAnswer: (status: number, answer: Buffer) => void;
  onFailure: (error: Error) => void;
};

const headEnd = Buffer.from("\r\n\r\n");
const contentLength = /\r\ncontent-length: (\d+)\r\n/i;
const chunked = /\r\ntransfer-encoding: chunked\r\n/i;
/** Ends a chunked response. JSON never contains these bytes, because it escapes line breaks in texts. */
const lastChunk = Buffer.from("\r\n0\r\n\r\n");
/** Larger than any response, so that most arrive in one read. */
const readBufferBytes = 64 * 1024;

export function openRawConnection(url: string, handlers: Handlers): RawConnection {
  let unfinished: Buffer | undefined;
  let closing = false;

  function take(chunk: Buffer): void {
    const answer = unfinished === undefined ? chunk : Buffer.concat([unfinished, chunk]);
    const status = finishedStatus(answer);
    if (status === undefined) {
      unfinished = unfinished === undefined ? Buffer.from(answer) : answer;
      return;
    }
    unfinished = undefined;
    handlers.onAnswer(status, answer);
  }

  const socket = openSocket(url, Buffer.allocUnsafe(readBufferBytes), take);
  socket.on("connect", handlers.onOpen);
  socket.on("error", (error) => closing || handlers.onFailure(error));
  socket.on("close", () => closing || handlers.onFailure(new Error("connection closed")));
  return {
    send: (request) => void socket.write(request),
    close() {
      closing = true;
      socket.destroy();
    },
  };
}

/** Opens a socket that reads into one buffer. The bytes are valid only during the call of `take`. */
export function openSocket(url: string, buffer: Buffer, take: (chunk: Buffer) => void) {
  const { hostname: host, port } = new URL(url);
  return connect({
    ...{ host, port: Number(port), noDelay: true },
    onread: {
      buffer,
      callback(length) {
        take(buffer.subarray(0, length));
        return true;
      },
    },
  });
}

/** Returns the status of a complete response; undefined while it is incomplete. */
function finishedStatus(answer: Buffer): number | undefined {
  const headLength = answer.indexOf(headEnd);
  if (headLength < 0) return undefined;
  const head = answer.toString("latin1", 0, headLength + 2);
  const status = Number(head.slice("HTTP/1.1 ".length, "HTTP/1.1 200".length));
  const bodyLength = contentLength.exec(head)?.[1];
  if (bodyLength === undefined && chunked.test(head))
    return answer.subarray(-lastChunk.length).equals(lastChunk) ? status : undefined;
  const length = headLength + headEnd.length + Number(bodyLength ?? 0);
  return answer.length >= length ? status : undefined;
}

/** A connection of a client that waits for each response. */
export async function openClient(url: string) {
  const { host } = new URL(url);
  const opened = Promise.withResolvers<void>();
  let waiting = Promise.withResolvers<{ status: number; bytes: Buffer }>();
  const connection = openRawConnection(url, {
    onOpen: opened.resolve,
    onAnswer: (status, answer) => waiting.resolve({ status, bytes: Buffer.from(answer) }),
    onFailure(error) {
      opened.reject(error);
      waiting.reject(error);
    },
  });
  // A failure without a request in flight is reported by the next one.
  waiting.promise.catch(() => undefined);
  await opened.promise;
  return {
    close: connection.close,
    request(plan: RequestPlan) {
      waiting = Promise.withResolvers();
      connection.send(requestBytes(plan, host));
      return waiting.promise;
    },
  };
}

export type CapturedAnswer = Awaited<ReturnType<typeof captureAnswer>>;

/** Returns a parsed response, with names and values of its headers in their order. */
export async function captureAnswer(url: string, plan: RequestPlan) {
  const client = await openClient(url);
  const { status, bytes } = await client.request(plan).finally(client.close);
  const headLength = bytes.indexOf("\r\n\r\n");
  const [statusLine = "", ...lines] = bytes.toString("latin1", 0, headLength).split("\r\n");
  const headers = lines.map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()] as const;
  });
  const statusText = statusLine.split(" ").slice(2).join(" ");
  const body = bytes.subarray(headLength + headEnd.length);
  const isChunked = chunked.test(bytes.toString("latin1", 0, headLength + 2));
  return { status, statusText, headers, body: isChunked ? joinChunks(body) : body };
}

function joinChunks(body: Buffer): Buffer {
  const chunks: Buffer[] = [];
  let at = 0;
  while (true) {
    const start = body.indexOf("\r\n", at) + 2;
    const size = Number.parseInt(body.toString("latin1", at, start), 16);
    if (size === 0) return Buffer.concat(chunks);
    chunks.push(body.subarray(start, start + size));
    at = start + size + 2;
  }
}

export function headerOf({ headers }: CapturedAnswer, name: string): string {
  return headers.find(([each]) => each.toLowerCase() === name)?.[1] ?? "";
}

/** Returns the request of a client that has the response already. */
export async function unchanged(url: string, plan: RequestPlan): Promise<RequestPlan> {
  const etag = headerOf(await captureAnswer(url, plan), "etag");
  return { ...plan, headers: { ...plan.headers, "If-None-Match": etag } };
}

/** Returns alternating names and values of all headers but the given ones, which are in lower case. */
export function headersWithout({ headers }: CapturedAnswer, names: readonly string[]): string[] {
  return headers.filter(([name]) => !names.includes(name.toLowerCase())).flat();
}
