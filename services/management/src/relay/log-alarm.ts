import type { StreamSize } from "@halyard/jetstream";

/** From this share of its bound on, the log of events needs attention. */
const alarmShare = 0.8;

/**
 * Returns the problem that the size of the log causes. At its bound the log discards its oldest events,
 * also those that webhook dispatchers have not read, so the alarm comes before the bound.
 */
export function logAlarm(size: StreamSize, configuredMaxBytes: number): string | undefined {
  const { bytes, maxBytes } = size;
  if (maxBytes !== configuredMaxBytes)
    return bytes > configuredMaxBytes
      ? "FLAG_EVENTS is larger than FLAG_EVENTS_MAX_BYTES; the bound is applied when enough events have expired"
      : "FLAG_EVENTS_MAX_BYTES is not applied";
  if (bytes < alarmShare * maxBytes) return undefined;
  return "FLAG_EVENTS is almost full and will discard its oldest events; raise FLAG_EVENTS_MAX_BYTES";
}
