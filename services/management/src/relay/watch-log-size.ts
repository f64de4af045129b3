import { flagEventsStream } from "@halyard/contracts";
import { boundStream, findBacklog, type StreamSize } from "@halyard/jetstream";
import type { Broker } from "./broker.ts";
import { logAlarm } from "./log-alarm.ts";
import type { WakeUp } from "./wake-up.ts";

/** The size of the log of events, and the number of events that webhook dispatchers have not processed. */
export type LogSize = StreamSize & { unread: number };

/** An attempt to fill the log takes hours, so this is soon enough. */
const watchEveryMs = 10_000;

/**
 * Measures the log of events, and applies its bound to a log that was created without it or with another
 * one. A failure does not end the round: publishing is more important than the bound.
 */
export async function watchLogSize(
  options: { broker: Broker; wakeUp: WakeUp; onLogSize: (size: LogSize) => void },
  signal: AbortSignal,
): Promise<void> {
  const { manager, logger, flagEventsMaxBytes } = options.broker;
  const { name, webhookConsumer, defaultMaxBytes } = flagEventsStream;
  const maxBytes = flagEventsMaxBytes ?? defaultMaxBytes;
  let alarm: string | undefined;
  while (!signal.aborted) {
    try {
      const size = await boundStream(manager, name, maxBytes);
      if (size !== undefined) {
        const backlog = await findBacklog(manager, { stream: name, consumer: webhookConsumer });
        options.onLogSize({ ...size, unread: backlog?.waiting ?? 0 });
        const before = alarm;
        alarm = logAlarm(size, maxBytes);
        if (alarm !== undefined && alarm !== before) logger.error({ ...size, maxBytes }, alarm);
      }
    } catch (err) {
      logger.warn({ err }, "the size of FLAG_EVENTS could not be measured or bounded");
    }
    await options.wakeUp.sleep(watchEveryMs, signal);
  }
}
