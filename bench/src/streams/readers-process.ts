import { connect } from "node:net";
import { nowMs } from "../clock.ts";
import { requestBytes } from "../http/request-bytes.ts";
import { answerParent } from "../processes/answer-parent.ts";
import type { ReaderQuestion } from "./readers.ts";

/** Minimal readers of many streams: they search the received bytes for one word. */

/** Number of connections that open concurrently; fewer than a listener's backlog. */
const openingAtOnce = 100;
/** Timeout of an event. A later event counts as lost. */
const timeoutMs = 20_000;

let streams = 0;
let changeLine: Buffer;
let moments: number[] = [];
let complete = Promise.withResolvers<void>();

answerParent<ReaderQuestion>({
  greeting: {},
  async answer(question) {
    switch (question.kind) {
      case "open":
        streams = question.streams;
        changeLine = Buffer.from(question.stream.changeLine);
        await openAll(question);
        return {};
      case "arm":
        moments = [];
        complete = Promise.withResolvers<void>();
        return {};
      case "arrivals": {
        const late = setTimeout(() => complete.reject(new Error(missing())), timeoutMs);
        await complete.promise;
        clearTimeout(late);
        return { moments };
      }
    }
  },
});

function missing(): string {
  return `${streams - moments.length} of ${streams} streams did not get the event`;
}

type Opening = Extract<ReaderQuestion, { kind: "open" }>;

async function openAll(opening: Opening): Promise<void> {
  let left = opening.streams;
  async function openInTurn(): Promise<void> {
    while (left > 0) {
      left -= 1;
      await openStream(opening);
    }
  }
  await Promise.all(Array.from({ length: openingAtOnce }, openInTurn));
}

/** Data is processed before the next read, so one buffer is enough for all streams. */
const buffer = Buffer.allocUnsafe(64 * 1024);

/** Resolves when the last of the first events begins. */
function openStream({ url, key, stream }: Opening): Promise<void> {
  const { hostname, port } = new URL(url);
  const firstLine = Buffer.from(stream.firstLine);
  return new Promise((resolve, reject) => {
    let opened = false;
    const socket = connect({
      host: hostname,
      port: Number(port),
      noDelay: true,
      onread: {
        buffer,
        callback(length) {
          const chunk = buffer.subarray(0, length);
          if (opened) take(chunk);
          else if (chunk.includes(firstLine)) {
            opened = true;
            resolve();
          }
          return true;
        },
      },
    });
    socket.on("connect", () => {
      const headers = { Authorization: `Bearer ${key}`, Accept: "text/event-stream" };
      const plan = { method: "GET", path: stream.path, headers };
      socket.write(requestBytes(plan, `${hostname}:${port}`));
    });
    socket.on("error", reject);
    socket.on("close", () => {
      throw new Error("the server closed a stream");
    });
  });
}

function take(chunk: Buffer): void {
  if (!chunk.includes(changeLine)) return;
  moments.push(nowMs());
  if (moments.length === streams) complete.resolve();
}
