import { openClient, openSocket } from "../http/raw-connection.ts";
import { requestBytes } from "../http/requests.ts";
import { userOf } from "../targeting/targeted-flags.ts";
import { ofrepBulk } from "../targeting/ways-of-asking.ts";

/** Delay before a refetch, as in OpenFeature's web provider. */
const debounceMs = 50;

/**
 * Simulates OpenFeature's web provider. It evaluates all flags, opens the offered event stream, and evaluates again
 * shortly after each `refetchEvaluation`, with its ETag and the one of the event. Resolves when the stream is open.
 */
export async function openRefetchingClient(options: {
  url: string;
  key: string;
  number: number;
  onRefetched: (status: number) => void;
}): Promise<void> {
  const { url, key, number, onRefetched } = options;
  const evaluation = ofrepBulk.plan(userOf(number), key);
  const client = await openClient(url);
  const { status, bytes } = await client.request(evaluation);
  const answer = bytes.toString();
  if (status !== 200) throw new Error(`bulk evaluation: ${status} ${answer}`);
  let tag = tagOf(answer);
  let debounce: NodeJS.Timeout | undefined;

  async function refetch(told: string): Promise<void> {
    const { status, bytes } = await client.request({
      ...evaluation,
      path: `${evaluation.path}?flagConfigEtag=${encodeURIComponent(told)}`,
      headers: { ...evaluation.headers, "If-None-Match": tag },
    });
    if (status === 200) tag = tagOf(bytes.toString());
    onRefetched(status);
  }

  await openStream(url, streamPathOf(answer), (told) => {
    clearTimeout(debounce);
    debounce = setTimeout(() => void refetch(told), debounceMs);
  });
}

function tagOf(answer: string): string {
  return /^etag: (.*)\r$/im.exec(answer)?.[1] ?? "";
}

function streamPathOf(answer: string): string {
  type Stream = { type: string; endpoint: { requestUri: string } };
  const body = answer.slice(answer.indexOf("\r\n\r\n"));
  const { eventStreams } = JSON.parse(body) as { eventStreams?: readonly Stream[] };
  const offered = eventStreams?.find(({ type }) => type === "sse");
  if (offered === undefined) throw new Error("the evaluation contains no stream URL");
  return offered.endpoint.requestUri;
}

/** Data is processed before the next read, so one buffer is enough for all streams. */
const buffer = Buffer.allocUnsafe(64 * 1024);

/** Resolves after the stream's head. `onRefetch` receives the ETag of each message. */
function openStream(url: string, path: string, onRefetch: (told: string) => void): Promise<void> {
  return new Promise((resolve) => {
    const socket = openSocket(url, buffer, (chunk) => {
      const text = chunk.toString();
      if (text.startsWith("HTTP/1.1 200 ")) resolve();
      else if (text.startsWith("HTTP/1.1 ")) throw new Error(`stream: ${text}`);
      const message = /^data: (\{"type":"refetchEvaluation".*\})$/m.exec(text)?.[1];
      if (message !== undefined) onRefetch((JSON.parse(message) as { etag: string }).etag);
    });
    socket.on("connect", () => {
      const plan = { method: "GET", path, headers: { Accept: "text/event-stream" } };
      socket.write(requestBytes(plan, new URL(url).host));
    });
    socket.on("close", () => {
      throw new Error("the server closed a stream");
    });
  });
}
