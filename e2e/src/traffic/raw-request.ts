import { request } from "node:http";
import { connect, type Socket } from "node:net";

/** A request as bytes allow it and no decent client sends it, and the answer, read to the end. */
export type RawRequest = {
  method: string;
  /** The path as it goes out: nothing is encoded, normalized or checked. */
  path: string;
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
};

export type RawAnswer = {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
};

const timeoutMs = 15_000;

export function sendRaw(url: string, asked: RawRequest): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        hostname,
        port,
        method: asked.method,
        path: asked.path,
        headers: {
          ...asked.headers,
          ...(asked.body === undefined ? {} : { "content-length": Buffer.byteLength(asked.body) }),
        },
        timeout: timeoutMs,
        agent: false,
      },
      (response) => {
        const isStream = String(response.headers["content-type"]).startsWith("text/event-stream");
        const chunks: Buffer[] = [];
        const settle = () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString(),
          });
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        // A stream has no end; that it was opened is the answer.
        if (isStream) {
          settle();
          outgoing.destroy();
        } else response.on("end", settle).on("error", reject);
      },
    );
    outgoing.on("timeout", () => outgoing.destroy(new Error("no answer in time")));
    outgoing.on("error", (error) => reject(new Error(describe(asked), { cause: error })));
    outgoing.end(asked.body);
  });
}

/** The bytes of a text's UTF-8 as Node's client takes them: one character each. */
export function headerBytes(text: string): string {
  return Buffer.from(text).toString("latin1");
}

export function describe({ method, path, headers, body }: RawRequest): string {
  const shownBody = body === undefined ? "" : ` ${String(body).slice(0, 120)}`;
  return `${method} ${path.slice(0, 160)} ${JSON.stringify(headers ?? {}).slice(0, 160)}${shownBody}`;
}

/** What a connection answers to bytes that may be no HTTP at all, until it is closed. */
export function exchangeBytes(url: string, bytes: string | Buffer): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = open(url, bytes);
    socket.on("data", (chunk) => chunks.push(chunk));
    // A reset is an answer as well.
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(Buffer.concat(chunks).toString("latin1")));
  });
}

/** Sends bytes and goes away, in order or not, without waiting for an answer. */
export function sendAndLeave(
  url: string,
  bytes: string | Buffer,
  leave: (socket: Socket) => void,
): Promise<void> {
  return new Promise((resolve) => {
    const socket = open(url, bytes, () => leave(socket));
    socket.on("error", () => undefined);
    socket.on("data", () => undefined);
    socket.on("close", () => resolve());
  });
}

function open(url: string, bytes: string | Buffer, sent?: () => void): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.write(bytes, () => sent?.());
  return socket;
}
