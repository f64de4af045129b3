import { connect, type Socket } from "node:net";
import { nowMs } from "../clock.ts";
import { requestBytes } from "../http/request-bytes.ts";
import { answerParent } from "../processes/answer-parent.ts";
import type { OpenerQuestion, Openings } from "./openers.ts";

/** Opens many streams on several edges, records the result of each, and keeps them open. */

/** Number of connections that open concurrently; fewer than the listeners' backlogs. */
const openingAtOnce = 100;
const heartbeatEvent = Buffer.from("event: heartbeat\n");
const statusLineEnd = "HTTP/1.1 200".length;

const held = new Set<Socket>();
/** Streams that an edge closed. None is expected. */
let lost = 0;

answerParent<OpenerQuestion>({
  greeting: {},
  async answer(question) {
    if (question.kind === "open") return openAll(question);
    const closed = [...held].map(
      (socket) => new Promise((resolve) => socket.removeAllListeners("close").on("close", resolve)),
    );
    for (const socket of held) socket.destroy();
    await Promise.all(closed);
    held.clear();
    const answer = { lost };
    lost = 0;
    return answer;
  },
});

async function openAll(order: Extract<OpenerQuestion, { kind: "open" }>): Promise<Openings> {
  const openings: Openings = { tookMs: [], rejected: 0, failed: 0 };
  let next = 0;
  async function openInTurn(): Promise<void> {
    while (next < order.streams) {
      const url = order.urls[next % order.urls.length] as string;
      next += 1;
      const beganMs = nowMs();
      const outcome = await openStream(url, order.key);
      if (outcome === "open") openings.tookMs.push(nowMs() - beganMs);
      else openings[outcome] += 1;
    }
  }
  await Promise.all(Array.from({ length: openingAtOnce }, openInTurn));
  return openings;
}

/** Resolves when a stream is open, which is after its first events. The last of them is the heartbeat. */
function openStream(url: string, key: string): Promise<"open" | "rejected" | "failed"> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    let opened = false;
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    socket.on("connect", () => {
      const headers = { Authorization: `Bearer ${key}`, Accept: "text/event-stream" };
      const plan = { method: "GET", path: "/api/v1/sdk/stream", headers };
      socket.write(requestBytes(plan, `${hostname}:${port}`));
    });
    socket.on("data", (chunk: Buffer) => {
      if (opened) return;
      const status = chunk.toString("latin1", 0, statusLineEnd);
      if (status.startsWith("HTTP/1.1 ") && !status.endsWith(" 200")) {
        resolve(status.endsWith(" 429") ? "rejected" : "failed");
        socket.destroy();
      } else if (chunk.includes(heartbeatEvent)) {
        opened = true;
        held.add(socket);
        resolve("open");
      }
    });
    socket.on("error", () => resolve("failed"));
    socket.on("close", () => {
      if (held.delete(socket)) lost += 1;
      else resolve("failed");
    });
  });
}
