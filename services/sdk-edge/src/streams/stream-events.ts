import { asciiJson } from "../environment/ascii-json.ts";
import type { Delta } from "../environment/delta.ts";
import type { FlagValues } from "../environment/flag-values.ts";

/**
 * The texts and bytes of server-sent events. All streams that receive the same event share its bytes until the slowest
 * has sent them.
 */

/** Makes an OpenFeature client evaluate again. The client sends the tag with that request. */
export function refetchEvent(configurationTag: string): string {
  return `id: ${configurationTag}\ndata: {"type":"refetchEvaluation","etag":"${configurationTag}"}\n\n`;
}

/**
 * Gives an OpenFeature client the tag without causing a request, because clients ignore events of an unknown type.
 * After a lost connection the client sends the tag, and then receives a refetch if it missed a change.
 */
export function tagEvent(configurationTag: string): string {
  return `id: ${configurationTag}\ndata: {"type":"connected"}\n\n`;
}

const fullEvents = new WeakMap<FlagValues, Buffer>();

/** Returns the event with all values. */
export function fullEvent(values: FlagValues): Buffer {
  let event = fullEvents.get(values);
  if (event === undefined) {
    event = flagsEvent(values.etag, values.body);
    fullEvents.set(values, event);
  }
  return event;
}

/** Returns the delta event: the changed values and the current ETag. */
export function deltaEvent(etag: string, { changed, removed }: Delta): string {
  const values = changed.map(([key, value]) => `${asciiJson(key)}:${value}`).join(",");
  return flagsText(etag, withRemoved(`{"flags":{${values}}}`, removed));
}

/** Returns the event for a client that missed events: all values, and the flags that were removed meanwhile. */
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

/** Formats an event. JSON contains no line breaks, so the data is always one line. */
function flagsText(etag: string, data: string): string {
  return `event: flags\nid: ${etag}\ndata: ${data}\n\n`;
}
