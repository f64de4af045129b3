import { once } from "node:events";
import type { Socket } from "node:net";
import got, { type Request, type Response } from "got";
import type { Agents } from "./agents.ts";
import type { Lookup } from "./checked-lookup.ts";
import { watchForLostConnection } from "./lost-connection.ts";
import { readBeginning } from "./read-beginning.ts";

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
