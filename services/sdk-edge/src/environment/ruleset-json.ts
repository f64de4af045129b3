import type { FlagEntry } from "@halyard/contracts";
import type { ConfigurationTag } from "./configuration-tag.ts";
import type { EnvironmentView } from "./environment-view.ts";

/**
 * The JSON of rule sets and the events that contain it. JSON contains no line breaks, so the data of an event is always
 * one line.
 */

/** Returns the ETag of a rule set, which is also the id of its events. */
export function etagOf({ text }: ConfigurationTag): string {
  return `"${text}"`;
}

/** Returns a flag as a member of `flags`. */
export function flagMember({
  key,
  enabled,
  rollout_percentage,
  targeting_rules,
  version,
}: FlagEntry): string {
  const rules = { enabled, rollout_percentage, targeting_rules, version };
  return `${JSON.stringify(key)}:${JSON.stringify(rules)}`;
}

/** Returns the text before and after the members of `flags` in a response. */
export function bodyFrame(environmentId: string): Frame {
  return { begin: `{"environment_id":"${environmentId}","flags":{`, end: "}}" };
}

/** Returns the text before and after the members of `flags` in an event with all flags. */
export function fullEventFrame(environmentId: string, etag: string): Frame {
  const begin = `{"environment_id":"${environmentId}","full":true,"flags":{`;
  return { begin: `event: ruleset\nid: ${etag}\ndata: ${begin}`, end: "}}\n\n" };
}

export type Frame = { begin: string; end: string };

/**
 * Returns the delta event for a client that may have other rules of the flags with these keys, and has all other rules
 * of the view. Keys without a flag are listed as removed.
 */
export function deltaEvent({
  environmentId,
  view,
  tag,
  keys,
}: {
  environmentId: string;
  view: EnvironmentView;
  /** The tag of the view. */
  tag: ConfigurationTag;
  keys: Iterable<string>;
}): Buffer {
  const members: string[] = [];
  const removed: string[] = [];
  for (const key of keys) {
    const flag = view.find(key);
    if (flag === undefined) removed.push(key);
    else members.push(flagMember(flag.entry));
  }
  const last = removed.length === 0 ? "" : `,"removed":${JSON.stringify(removed)}`;
  const data = `{"environment_id":"${environmentId}","flags":{${members.join(",")}}${last}}`;
  return Buffer.from(`event: ruleset\nid: ${etagOf(tag)}\ndata: ${data}\n\n`);
}
