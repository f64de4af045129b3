import { once } from "node:events";
import { type AgentOptions, type ClientRequest, Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import got, { type Request, RequestError, type Response } from "got";
import type { Lookup } from "./names.ts";

export type OutgoingRequest = { url: URL; headers: Record<string, string>; body: string };
export type Answer = { status: number; body: string; retryAfter: string | undefined };

/** The code of the failure that a target switched to another protocol. */
export const protocolSwitched = "ERR_PROTOCOL_SWITCHED";

type Connection = { agents: Agents; lookup: Lookup; signal: AbortSignal };

/**
 * Sends a request and reads the answer; throws got's `RequestError` when there is none. An answer counts
 * when its body came to its end or to as much of it as is read: one that breaks off before says nothing
 * for sure.
 *
 * When a connection that was kept turns out to be closed, the request is sent once more, on a new one. The
 * target may get it twice that way, as with every delivery that is made again.
 */
export async function exchange(request: OutgoingRequest, connection: Connection): Promise<Answer> {
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
    // A small answer can unpack to one of any size; nobody needs to read it.
    decompress: false,
    // Also when NODE_TLS_REJECT_UNAUTHORIZED says otherwise.
    https: { rejectUnauthorized: true },
  });
  // A target that switches protocols gets no say: Node.js would leave its connection to us, open.
  stream.once("upgrade", (_answer: unknown, socket: Socket) => {
    socket.destroy();
    stream.destroy(new ProtocolSwitchedError());
  });
  // Errors are thrown below, while something waits; one that comes when all has been read is none.
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

/** The answer was 101, of which nothing can follow that we would read. */
class ProtocolSwitchedError extends Error {
  override readonly name = "ProtocolSwitchedError";
  readonly code = protocolSwitched;

  constructor() {
    super("The target switched to another protocol.");
  }
}

/**
 * Connections are kept for the next delivery, but not for long: servers close idle ones after 5 s
 * upwards, and a request that is sent at that very moment is lost.
 */
const idleMs = 4_000;
/** As many as one webhook's deliveries may use at the same time. */
const idlePerTarget = 16;
/**
 * A target with several addresses is tried at one after the other, each for so long: a round trip around
 * the world, with its first packet lost. Node.js gives up much sooner than distant targets answer.
 */
const perAddressMs = 1_500;

type AgentsByProtocol = { http: HttpAgent; https: HttpsAgent };
export type Agents = {
  kept: AgentsByProtocol;
  /** Their connections are new, and serve one request. */
  fresh: AgentsByProtocol;
  destroy(): void;
};

/** They know nothing of proxies, so that what is in the environment for others does not apply. */
export function createAgents(): Agents {
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

/** How Node.js tells that the other side has closed the connection. */
const closedCodes: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE"]);

/**
 * Watches a request for what happens when the target closes a kept connection just as it is sent: the
 * connection ends without a byte of an answer, and the request was most likely not even read. Some targets
 * close every connection after an answer without saying so. Answers whether a failure was this one.
 */
export function watchForLostConnection(stream: Request): (failure: unknown) => boolean {
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

/** So much of an answer is kept to be looked at; whatever follows is not even received. */
const maxStoredBytes = 2_048;

/**
 * The beginning of a body as text. A body that goes on has its connection closed. Bytes that are no
 * UTF-8 become replacement characters; so do zeros, which PostgreSQL keeps in no text.
 */
export async function readBeginning(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop destroys the stream.
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= maxStoredBytes) break;
  }
  const kept = Buffer.concat(chunks).subarray(0, maxStoredBytes);
  // As if more was to come: a character that was cut in the middle is left out.
  return new TextDecoder().decode(kept, { stream: true }).replaceAll("\0", "\u{FFFD}");
}
