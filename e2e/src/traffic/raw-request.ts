import { request } from "node:http";
import { connect, type Socket } from "node:net";

/** A request that may be malformed, which ordinary clients would not send, and the complete response. */
export type RawRequest = {
  method: string;
  /** The path as it is sent, without encoding, normalization or validation. */
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
        // A stream has no end, so the response is complete when it is open.
        if (isStream) {
          settle();
          outgoing.destroy();
        } else response.on("end", settle).on("error", reject);
      },
    );
    outgoing.on("timeout", () => outgoing.destroy(new Error("the request timed out")));
    outgoing.on("error", (error) => reject(new Error(describe(asked), { cause: error })));
    outgoing.end(asked.body);
  });
}

/** Returns the UTF-8 of a text in the form that Node's client accepts for headers: one character per byte. */
export function headerBytes(text: string): string {
  return Buffer.from(text).toString("latin1");
}

export function describe({ method, path, headers, body }: RawRequest): string {
  const shownBody = body === undefined ? "" : ` ${String(body).slice(0, 120)}`;
  return `${method} ${path.slice(0, 160)} ${JSON.stringify(headers ?? {}).slice(0, 160)}${shownBody}`;
}

/** Sends bytes that may not be HTTP. Returns everything that is received until the connection closes. */
export function exchangeBytes(url: string, bytes: string | Buffer): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = open(url, bytes);
    socket.on("data", (chunk) => chunks.push(chunk));
    // A reset also counts as a response.
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(Buffer.concat(chunks).toString("latin1")));
  });
}

/** Sends bytes and closes the connection with `leave`, without waiting for a response. */
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
