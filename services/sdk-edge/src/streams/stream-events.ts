import { asciiJson } from "../environment/ascii-json.ts";
import type { Delta } from "../environment/delta.ts";
import type { FlagValues } from "../environment/flag-values.ts";

/**
 * Server-sent events, as the bytes that go out. An event is made once and handed to every stream that
 * gets it; all of them share its bytes until the slowest has sent them.
 */

/** Asks clients to come back after about three seconds; `random` keeps a herd of them apart. */
export function retryLine(random: () => number): string {
  const milliseconds = minRetryMs + Math.floor(random() * retryJitterMs);
  return `retry: ${milliseconds}\n\n`;
}

const minRetryMs = 3_000;
const retryJitterMs = 1_500;

export function heartbeatEvent(nowMs: number): string {
  return `event: heartbeat\ndata: {"timestamp":${Math.floor(nowMs / 1_000)}}\n\n`;
}

/** The same for streams whose readers know no such event: a comment, which every reader skips. */
export const keepAlive = Buffer.from(": keep-alive\n\n");

/** Tells an OpenFeature client to ask again; it says the tag when it does. */
export function refetchEvent(configurationTag: string): string {
  return `id: ${configurationTag}\ndata: {"type":"refetchEvaluation","etag":"${configurationTag}"}\n\n`;
}

/**
 * Gives an OpenFeature client the tag without asking anything of it: kinds that it does not know it
 * skips. When its connection is lost it comes back with the tag, and hears what it has missed.
 */
export function knownEvent(configurationTag: string): string {
  return `id: ${configurationTag}\ndata: {"type":"connected"}\n\n`;
}

const fullEvents = new WeakMap<FlagValues, Buffer>();

/** The event with all values. */
export function fullEvent(values: FlagValues): Buffer {
  let event = fullEvents.get(values);
  if (event === undefined) {
    event = flagsEvent(values.etag, values.body);
    fullEvents.set(values, event);
  }
  return event;
}

/** The delta event: changed values and the current ETag. */
export function deltaEvent(etag: string, { changed, removed }: Delta): string {
  const values = changed.map(([key, value]) => `${asciiJson(key)}:${value}`).join(",");
  return flagsText(etag, withRemoved(`{"flags":{${values}}}`, removed));
}

/** All values, for a reader who has missed what came between, and the flags that went meanwhile. */
export function catchUpEvent(values: FlagValues, removed: readonly string[]): Buffer {
  if (removed.length === 0) return fullEvent(values);
  return flagsEvent(values.etag, withRemoved(values.body, removed));
}

function withRemoved(body: string, removed: readonly string[]): string {
  if (removed.length === 0) return body;
  return `${body.slice(0, -1)},"removed":${asciiJson(removed)}}`;
}

function flagsEvent(etag: string, data: string): Buffer {
  return Buffer.from(flagsText(etag, data));
}

/** JSON holds no line breaks of its own, so the data is always one line. */
function flagsText(etag: string, data: string): string {
  return `event: flags\nid: ${etag}\ndata: ${data}\n\n`;
}
