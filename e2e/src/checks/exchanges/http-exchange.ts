import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/**
 * Sends HTTP requests as bytes, and returns all bytes of the response, including the case and order of header names.
 */
export type Asked = {
  method?: string;
  path: string;
  headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON, a text unchanged. */
  body?: unknown;
};

export type Answer = { head: string; body: string };

const giveUpAfterMs = 15_000;

/** Returns the bytes of a request that closes its connection. */
export function requestText({ method = "GET", path, headers = {}, body }: Asked): string {
  const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  const lines = [`${method} ${path} HTTP/1.1`, "Host: halyard.test", "Connection: close"];
  if (text !== undefined && headers["Content-Type"] === undefined)
    lines.push("Content-Type: application/json");
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  if (text !== undefined) lines.push(`Content-Length: ${Buffer.byteLength(text)}`);
  return `${lines.join("\r\n")}\r\n\r\n${text ?? ""}`;
}

/**
 * Sends bytes, and returns everything received until the connection closes, or, for streams, until `isEnough` returns
 * true.
 */
export async function exchange(
  url: string,
  bytes: string,
  isEnough: (received: string) => boolean = () => false,
): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  let received = "";
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const enough = new Promise<void>((resolve) => {
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      if (isEnough(received)) resolve();
    });
  });
  // A reset also counts as a response.
  socket.on("error", () => undefined);
  socket.write(bytes);
  const timeOut = new AbortController();
  const late = delay(giveUpAfterMs, "late", { signal: timeOut.signal }).catch(() => undefined);
  const outcome = await Promise.race([closed, enough, late]);
  timeOut.abort();
  socket.destroy();
  if (outcome === "late") throw new Error(`no end within ${giveUpAfterMs} ms: ${received}`);
  return received;
}

/** Splits a response into head and body, and joins the chunks of a chunked body. */
export function readAnswer(received: string): Answer {
  const end = received.indexOf("\r\n\r\n");
  if (end < 0) return { head: received, body: "" };
  const head = received.slice(0, end).replaceAll("\r\n", "\n");
  const body = received.slice(end + 4);
  const text = /^transfer-encoding: chunked$/im.test(head) ? joinChunks(body) : body;
  return { head, body: Buffer.from(text, "latin1").toString() };
}

function joinChunks(body: string): string {
  let rest = body;
  let joined = "";
  for (;;) {
    const lineEnd = rest.indexOf("\r\n");
    const length = Number.parseInt(rest.slice(0, lineEnd), 16);
    if (lineEnd < 0 || !(length > 0)) return joined;
    joined += rest.slice(lineEnd + 2, lineEnd + 2 + length);
    rest = rest.slice(lineEnd + 2 + length + 2);
  }
}
