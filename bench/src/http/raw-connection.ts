import { connect, type Socket } from "node:net";

/**
 * A minimal keep-alive connection with one request in flight, so that the load generator is not the
 * bottleneck. It sends prepared bytes and parses only the status and the length of a response.
 */
export type RawConnection = { send(request: Buffer): void; close(): void };

const headEnd = Buffer.from("\r\n\r\n");
const contentLength = /\r\ncontent-length: (\d+)\r\n/i;
/** Larger than any response, so that most arrive in one read. */
const readBufferBytes = 64 * 1024;

export function openRawConnection(
  address: { host: string; port: number },
  handlers: {
    onOpen: () => void;
    /** The bytes are valid only during the call. */
    onAnswer: (status: number, answer: Buffer) => void;
    onFailure: (error: Error) => void;
  },
): RawConnection {
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

  const buffer = Buffer.allocUnsafe(readBufferBytes);
  const socket: Socket = connect({
    ...address,
    noDelay: true,
    onread: {
      buffer,
      callback: (length) => {
        take(buffer.subarray(0, length));
        return true;
      },
    },
  });
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

/** Returns the status of a complete response; undefined while it is incomplete. */
function finishedStatus(answer: Buffer): number | undefined {
  const headLength = answer.indexOf(headEnd);
  if (headLength < 0) return undefined;
  const head = answer.toString("latin1", 0, headLength + 2);
  const status = Number(head.slice("HTTP/1.1 ".length, "HTTP/1.1 200".length));
  const bodyLength = Number(contentLength.exec(head)?.[1] ?? 0);
  const length = headLength + headEnd.length + bodyLength;
  return answer.length >= length ? status : undefined;
}
