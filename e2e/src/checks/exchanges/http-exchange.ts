import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** HTTP as bytes: what is sent, and every byte of the answer, with header names in their letter case and order. */
export type Asked = {
  method?: string;
  path: string;
  headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON, a text as it is. */
  body?: unknown;
};

export type Answer = { head: string; body: string };

const giveUpAfterMs = 15_000;

/** Returns the bytes of a request, after which the connection is closed. */
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
 * Sends bytes and returns what the connection answers until it is closed, or until `isEnough` says so, for streams.
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
  // A reset is an answer as well.
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

/** Splits an answer into head and body. A chunked body is joined. */
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
