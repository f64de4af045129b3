import { once } from "node:events";
import { type AgentOptions, type ClientRequest, Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import got, { type Request, RequestError, type Response } from "got";
import type { Lookup } from "./names.ts";

type OutgoingRequest = { url: URL; headers: Record<string, string>; body: string };
type Answer = { status: number; body: string; retryAfter: string | undefined };

/** Error code for a target that switches to another protocol. */
export const protocolSwitched = "ERR_PROTOCOL_SWITCHED";

type Connection = { agents: Agents; lookup: Lookup; signal: AbortSignal };

/**
 * Sends a POST request and returns the response. Throws got's `RequestError` if there is no complete response: the body
 * must arrive to its end, or up to the bytes that are stored. A truncated response does not prove that the target
 * processed the request.
 *
 * If the target has closed a reused connection, the request is sent again on a new connection. The target may receive
 * it twice, as with every retry.
 */
export async function post(request: OutgoingRequest, connection: Connection): Promise<Answer> {
  const { agents } = connection;
  const first = begin(request, connection, agents.kept);
  const wasLost = watchForLostConnection(first);
  try {
    return await readAnswer(first);
  } catch (error) {
    if (!wasLost(error)) throw error;
    return readAnswer(begin(request, connection, agents.fresh));
  }
}

function begin(
  { url, headers, body }: OutgoingRequest,
  { lookup, signal }: Connection,
  agent: Agents["kept"],
): Request {
  const stream = got.stream.post(url, {
    headers,
    body,
    agent,
    dnsLookup: lookup,
    signal,
    throwHttpErrors: false,
    followRedirect: false,
    retry: { limit: 0 },
    http2: false,
    enableUnixSockets: false,
    // A small compressed response can expand to any size.
    decompress: false,
    // Overrides NODE_TLS_REJECT_UNAUTHORIZED.
    https: { rejectUnauthorized: true },
  });
  // Node.js does not close an upgraded connection, so without this it would leak.
  stream.once("upgrade", (_answer: unknown, socket: Socket) => {
    socket.destroy();
    stream.destroy(new ProtocolSwitchedError());
  });
  // readAnswer throws the errors. An error after the body has been read is ignored.
  stream.on("error", () => undefined);
  return stream;
}

async function readAnswer(stream: Request): Promise<Answer> {
  const [response] = (await once(stream, "response")) as [Response];
  return {
    status: response.statusCode,
    retryAfter: response.headers["retry-after"],
    body: await readBeginning(stream),
  };
}

/** The target responded with 101, so no HTTP response follows. */
class ProtocolSwitchedError extends Error {
  override readonly name = "ProtocolSwitchedError";
  readonly code = protocolSwitched;

  constructor() {
    super("The target switched to another protocol.");
  }
}

/**
 * Idle time of a connection. Many servers close idle connections after 5 s, and a request that is sent at that moment
 * is lost.
 */
const defaultIdleMs = 4_000;
/** Maximum number of idle connections per target: the attempts that one webhook may have at a time. */
const idlePerTarget = 16;
/**
 * Connection timeout for each address of a target with several addresses. It allows for a round trip around the world
 * with the first packet lost. The default of Node.js is too short for distant targets.
 */
const perAddressMs = 1_500;

type AgentsByProtocol = { http: HttpAgent; https: HttpsAgent };
type Agents = {
  kept: AgentsByProtocol;
  /** Open a new connection for each request. */
  fresh: AgentsByProtocol;
  destroy(): void;
};

/** Creates agents that ignore the proxy settings in the environment. */
export function createAgents({ idleMs = defaultIdleMs } = {}): Agents {
  const shared = { autoSelectFamilyAttemptTimeout: perAddressMs };
  const keeping = { keepAlive: true, timeout: idleMs, maxFreeSockets: idlePerTarget };
  const kept = createBoth({ ...shared, ...keeping });
  const fresh = createBoth({ ...shared, keepAlive: false });
  return {
    kept,
    fresh,
    destroy() {
      for (const agent of [kept.http, kept.https, fresh.http, fresh.https]) agent.destroy();
    },
  };
}

const createBoth = (options: AgentOptions): AgentsByProtocol => ({
  http: new HttpAgent(options),
  https: new HttpsAgent(options),
});

/** Error codes of Node.js for a connection that the peer has closed. */
const closedCodes: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE"]);

/**
 * Returns a function that detects whether the target closed a reused connection before it read the request. In this
 * case the connection ends without a byte of a response. Some targets close every connection after a response without
 * announcing it.
 */
function watchForLostConnection(stream: Request): (failure: unknown) => boolean {
  let kept: { socket: Socket; bytesBefore: number } | undefined;
  stream.once("request", (request: ClientRequest) => {
    request.once("socket", (socket) => {
      if (request.reusedSocket) kept = { socket, bytesBefore: socket.bytesRead };
    });
  });
  return (failure) =>
    failure instanceof RequestError &&
    closedCodes.has(failure.code) &&
    kept !== undefined &&
    kept.socket.bytesRead === kept.bytesBefore;
}

/** Maximum number of bytes of a response body that are received and stored. */
const maxStoredBytes = 2_048;

/**
 * Reads the beginning of a body as text. Closes the connection if the body is longer. Replaces invalid UTF-8 and zero
 * bytes with U+FFFD, because PostgreSQL cannot store zero bytes in text.
 */
async function readBeginning(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop destroys the stream.
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= maxStoredBytes) break;
  }
  const kept = Buffer.concat(chunks).subarray(0, maxStoredBytes);
  // With `stream`, the decoder drops an incomplete character at the end.
  return new TextDecoder().decode(kept, { stream: true }).replaceAll("\0", "\u{FFFD}");
}
