import { type IncomingMessage, request } from "node:http";

/** An event that a client of a server-sent event stream receives. */
export type StreamEvent = { event: string; data: unknown; id: string | undefined };

export type EventStream = {
  status: number;
  /** All events received so far. */
  events: readonly StreamEvent[];
  headers: IncomingMessage["headers"];
  /** Returns the text received after the last event: the body of a response that is not a stream. */
  rest(): string;
  ended: Promise<void>;
  /** Stops reading, so that the server cannot send more than the buffers of the connection hold. */
  pause(): void;
  resume(): void;
  close(): void;
};

export async function openEventStream(
  url: string,
  headers: Record<string, string>,
  onEvent: (event: StreamEvent) => void = () => undefined,
): Promise<EventStream> {
  const events: StreamEvent[] = [];
  const outgoing = request(url, { headers, agent: false });
  outgoing.end();
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.on("response", resolve).on("error", reject);
  });
  let buffered = "";
  response.setEncoding("utf8");
  response.on("data", (text: string) => {
    buffered += text;
    for (let end = buffered.indexOf("\n\n"); end >= 0; end = buffered.indexOf("\n\n")) {
      const event = parse(buffered.slice(0, end));
      buffered = buffered.slice(end + 2);
      if (event === undefined) continue;
      events.push(event);
      onEvent(event);
    }
  });
  // The stream ends in the same way if the server crashes and if it closes the stream.
  response.on("error", () => undefined);
  const ended = new Promise<void>((resolve) => response.on("close", resolve));
  return {
    status: response.statusCode ?? 0,
    events,
    headers: response.headers,
    rest: () => buffered,
    ended,
    pause: () => void response.pause(),
    resume: () => void response.resume(),
    close: () => outgoing.destroy(),
  };
}

function parse(block: string): StreamEvent | undefined {
  const fields = new Map<string, string>();
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const name = line.slice(0, colon);
    const value = line.slice(colon + 1).replace(/^ /, "");
    fields.set(name, fields.has(name) ? `${fields.get(name)}\n${value}` : value);
  }
  const data = fields.get("data");
  if (data === undefined) return undefined;
  return { event: fields.get("event") ?? "message", data: JSON.parse(data), id: fields.get("id") };
}
