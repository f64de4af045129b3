import { connect } from "node:net";
import type { RequestPlan } from "../http/load.ts";
import { openRawConnection, type RawConnection } from "../http/raw-connection.ts";
import { requestBytes } from "../http/request-bytes.ts";
import { idOf, userNamed } from "../targeting/users.ts";
import { ofrepBulk } from "../targeting/ways-of-asking.ts";

/** Delay before a refetch, as in OpenFeature's web provider. */
const debounceMs = 50;

/**
 * Simulates OpenFeature's web provider. It evaluates all flags, opens the offered event stream, and evaluates
 * again shortly after each `refetchEvaluation`, with its ETag and the one of the event. Resolves when the
 * stream is open.
 */
export async function openRefetchingClient(options: {
  url: string;
  key: string;
  number: number;
  onRefetched: (status: number) => void;
}): Promise<void> {
  const { url, key, number, onRefetched } = options;
  const { hostname: host, port } = new URL(url);
  const evaluation = ofrepBulk.plan(userNamed(idOf(number), number), key);
  const asking = await openAskingConnection({ host, port: Number(port) });
  const first = await asking.ask(evaluation);
  if (first.status !== 200) throw new Error(`bulk evaluation: ${first.status} ${first.text}`);
  let tag = tagOf(first.text);
  let debounce: NodeJS.Timeout | undefined;

  async function refetch(told: string): Promise<void> {
    const { status, text } = await asking.ask({
      ...evaluation,
      path: `${evaluation.path}?flagConfigEtag=${encodeURIComponent(told)}`,
      headers: { ...evaluation.headers, "If-None-Match": tag },
    });
    if (status === 200) tag = tagOf(text);
    onRefetched(status);
  }

  await openStream({ host, port: Number(port), path: streamPathOf(first.text) }, (told) => {
    clearTimeout(debounce);
    debounce = setTimeout(() => void refetch(told), debounceMs);
  });
}

type Answer = { status: number; text: string };

/** The client's own connection, with one request at a time. */
async function openAskingConnection(address: { host: string; port: number }) {
  const opened = Promise.withResolvers<void>();
  let waiting = Promise.withResolvers<Answer>();
  const connection: RawConnection = openRawConnection(address, {
    onOpen: opened.resolve,
    onAnswer: (status, answer) => waiting.resolve({ status, text: answer.toString() }),
    onFailure: (error) => {
      throw error;
    },
  });
  await opened.promise;
  return {
    ask(plan: RequestPlan): Promise<Answer> {
      waiting = Promise.withResolvers();
      connection.send(requestBytes(plan, `${address.host}:${address.port}`));
      return waiting.promise;
    },
  };
}

function tagOf(answer: string): string {
  return /^etag: (.*)\r$/im.exec(answer)?.[1] ?? "";
}

function streamPathOf(answer: string): string {
  const body = answer.slice(answer.indexOf("\r\n\r\n"));
  const { eventStreams } = JSON.parse(body) as {
    eventStreams?: readonly { type: string; endpoint: { requestUri: string } }[];
  };
  const offered = eventStreams?.find(({ type }) => type === "sse");
  if (offered === undefined) throw new Error("the evaluation contains no stream URL");
  return offered.endpoint.requestUri;
}

/** Data is processed before the next read, so one buffer is enough for all streams. */
const buffer = Buffer.allocUnsafe(64 * 1024);

/** Resolves after the stream's head. `onRefetch` receives the ETag of each message. */
function openStream(
  { host, port, path }: { host: string; port: number; path: string },
  onRefetch: (told: string) => void,
): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port,
      noDelay: true,
      onread: {
        buffer,
        callback(length) {
          const text = buffer.toString("utf8", 0, length);
          if (text.startsWith("HTTP/1.1 200 ")) resolve();
          else if (text.startsWith("HTTP/1.1 ")) throw new Error(`stream: ${text}`);
          const message = /^data: (\{"type":"refetchEvaluation".*\})$/m.exec(text)?.[1];
          if (message !== undefined) onRefetch((JSON.parse(message) as { etag: string }).etag);
          return true;
        },
      },
    });
    socket.on("connect", () => {
      const headers = { Accept: "text/event-stream" };
      socket.write(requestBytes({ method: "GET", path, headers }, `${host}:${port}`));
    });
    socket.on("close", () => {
      throw new Error("the server closed a stream");
    });
  });
}
