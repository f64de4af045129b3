import type { Socket } from "node:net";
import { openSocket } from "../http/raw-connection.ts";
import { authorized, requestBytes } from "../http/requests.ts";
import { answerParent } from "../processes/answer-parent.ts";
import { createArrivals, repeatAtOnce } from "../processes/arrivals.ts";
import { nowMs } from "../time.ts";
import type { Opening } from "./readers.ts";

/** Minimal readers of many streams, which stay open: they search the received bytes for one word. */

/** Number of connections that open concurrently; fewer than a listener's backlog. */
const atOnce = 100;
const events = createArrivals("events");
const open = new Set<Socket>();
/** Streams that an edge closed. None is expected. */
let lost = 0;

const api = {
  /** Opens streams evenly on all URLs. */
  async open(opening: Opening) {
    // Milliseconds from connecting to the first events.
    const openings = { tookMs: [] as number[], rejected: 0 };
    await repeatAtOnce({ count: opening.streams, atOnce }, async (number) => {
      const url = opening.urls[number % opening.urls.length] as string;
      const beganMs = nowMs();
      const outcome = await openStream(url, opening);
      if (outcome === "open") openings.tookMs.push(nowMs() - beganMs);
      else if (outcome === "rejected") openings.rejected += 1;
    });
    return openings;
  },

  // A lost stream counts as well, so that its missing event is an error.
  arm: () => events.expect(open.size + lost),
  arrivals: events.all,

  /** Closes all streams. Returns how many the edges had closed. */
  async close(): Promise<number> {
    const closed = [...open].map(
      (socket) => new Promise((resolve) => socket.removeAllListeners("close").on("close", resolve)),
    );
    for (const socket of open) socket.destroy();
    await Promise.all(closed);
    open.clear();
    const result = lost;
    lost = 0;
    return result;
  },
};
export type ReadersApi = typeof api;
answerParent(api);

/** Data is processed before the next read, so one buffer is enough for all streams. */
const buffer = Buffer.allocUnsafe(64 * 1024);

/** Resolves when the last of the first events begins. */
function openStream(
  url: string,
  { key, stream }: Opening,
): Promise<"open" | "rejected" | "failed"> {
  const [firstLine, changeLine] = [Buffer.from(stream.firstLine), Buffer.from(stream.changeLine)];
  return new Promise((resolve) => {
    let opened = false;
    const socket = openSocket(url, buffer, (chunk) => {
      if (opened) {
        if (chunk.includes(changeLine)) events.arrived();
        return;
      }
      const status = /^HTTP\/1\.1 (\d+)/.exec(chunk.toString("latin1", 0, 20))?.[1] ?? "200";
      if (status !== "200") {
        resolve(status === "429" ? "rejected" : "failed");
        socket.destroy();
      } else if (chunk.includes(firstLine)) {
        opened = true;
        open.add(socket);
        resolve("open");
      }
    });
    socket.on("connect", () => {
      const headers = { ...authorized(key), Accept: "text/event-stream" };
      const plan = { method: "GET", path: stream.path, headers };
      socket.write(requestBytes(plan, new URL(url).host));
    });
    socket.on("error", () => resolve("failed"));
    socket.on("close", () => {
      if (open.delete(socket)) lost += 1;
      else resolve("failed");
    });
  });
}
