/**
 * Makes clients reconnect after about three seconds. The jitter of `random` spreads the reconnections of many clients.
 */
export function retryLine(random: () => number): string {
  const milliseconds = minRetryMs + Math.floor(random() * retryJitterMs);
  return `retry: ${milliseconds}\n\n`;
}

const minRetryMs = 3_000;
const retryJitterMs = 1_500;

/** Returns a heartbeat. With an id, clients send that id as `Last-Event-ID` even if no other event follows. */
export function heartbeatEvent(nowMs: number, id?: string): string {
  const idLine = id === undefined ? "" : `id: ${id}\n`;
  return `event: heartbeat\n${idLine}data: {"timestamp":${Math.floor(nowMs / 1_000)}}\n\n`;
}

/** The heartbeat of streams whose clients do not know that event: a comment, which every client ignores. */
export const keepAlive = Buffer.from(": keep-alive\n\n");
