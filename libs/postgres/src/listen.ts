import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import type { Logger } from "pino";

export type Listening = {
  /** The handler of each channel's notifications. */
  channels: Readonly<Record<string, (payload: string) => void>>;
  /**
   * Called each time listening begins, including after a lost connection. Notifications may have been lost before, so
   * it must read what they announced.
   */
  onListening: () => void;
  signal: AbortSignal;
};

const retryAfterMs = 1_000;
/** Interval of the statements that detect a silent server. */
const heartbeatMs = 10_000;

/** Listens on a separate connection, and reconnects after a loss, until the signal is aborted. */
export async function listen(
  createClient: () => pg.Client,
  { channels, onListening, signal }: Listening,
  logger: Logger,
): Promise<void> {
  while (!signal.aborted) {
    const client = createClient();
    client.on("error", () => undefined);
    client.on("notification", ({ channel, payload }) => channels[channel]?.(payload ?? ""));
    // Otherwise a silent server would delay a shutdown by the time-outs of the connection.
    const destroy = () => client.connection.stream.destroy();
    signal.addEventListener("abort", destroy, { once: true });
    let heartbeat: NodeJS.Timeout | undefined;
    try {
      await client.connect();
      const ended = once(client, "end", { signal });
      ended.catch(() => undefined);
      const names = Object.keys(channels).map((name) => client.escapeIdentifier(name));
      await client.query(names.map((name) => `listen ${name}`).join("; "));
      onListening();
      heartbeat = setInterval(() => {
        client.query("select 1").catch(() => undefined);
      }, heartbeatMs);
      await ended;
    } catch (err) {
      if (!signal.aborted) logger.warn({ err }, "not listening to PostgreSQL; retrying");
    }
    clearInterval(heartbeat);
    signal.removeEventListener("abort", destroy);
    void client.end();
    await delay(retryAfterMs, undefined, { signal }).catch(() => undefined);
  }
}
