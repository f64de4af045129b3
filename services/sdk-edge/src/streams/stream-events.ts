import { asciiJson } from "../environment/ascii-json.ts";
import type { EnvironmentView } from "../environment/environment-view.ts";
import { differenceBetween, removedKeys } from "../environment/view-difference.ts";

/**
 * Server-sent events, as the bytes that go out. An event is made once and handed to every stream that
 * gets it; all of them share its bytes until the slowest has sent them.
 */

/** Asks clients to come back after about three seconds; `random` keeps a herd of them apart. */
export function retryLine(random: () => number): string {
  const milliseconds = shortestRetryMs + Math.floor(random() * retryJitterMs);
  return `retry: ${milliseconds}\n\n`;
}

const shortestRetryMs = 3_000;
const retryJitterMs = 1_500;

export function heartbeatEvent(nowMs: number): string {
  return `event: heartbeat\ndata: {"timestamp":${Math.floor(nowMs / 1_000)}}\n\n`;
}

const fullEvents = new WeakMap<EnvironmentView, Buffer>();

/** The event with all values of a view. */
export function fullEvent(view: EnvironmentView): Buffer {
  let event = fullEvents.get(view);
  if (event === undefined) {
    event = flagsEvent(view.etag, view.body);
    fullEvents.set(view, event);
  }
  return event;
}

/** The event for those who know the values of before: only what is different now. */
export function changeEvent(before: EnvironmentView, after: EnvironmentView): Buffer {
  const { changed, removed } = differenceBetween(before, after);
  const values = changed.map(([key, value]) => `${asciiJson(key)}:${value}`).join(",");
  return flagsEvent(after.etag, withRemoved(`{"flags":{${values}}}`, removed));
}

/** All values, for a reader who last heard of `before` and has missed what came between. */
export function catchUpEvent(before: EnvironmentView, after: EnvironmentView): Buffer {
  const removed = removedKeys(before, after);
  if (removed.length === 0) return fullEvent(after);
  return flagsEvent(after.etag, withRemoved(after.body, removed));
}

function withRemoved(body: string, removed: readonly string[]): string {
  if (removed.length === 0) return body;
  return `${body.slice(0, -1)},"removed":${asciiJson(removed)}}`;
}

/** JSON holds no line breaks of its own, so the data is always one line. */
function flagsEvent(etag: string, data: string): Buffer {
  return Buffer.from(`event: flags\nid: ${etag}\ndata: ${data}\n\n`);
}
