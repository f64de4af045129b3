/**
 * Masks everything that differs between two runs of the same scenario: ids, keys, times, ports, signatures. Equal
 * values get equal numbered names in order of appearance, so a transcript still shows which ids are the same.
 */
export type Mask = {
  (text: string): string;
  /** Returns a mask with the names so far, which numbers further values independently. */
  fork(): Mask;
};

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const apiKey = /\b(h[cs])_([a-z2-7]{16})_[A-Za-z0-9_-]{43}/g;
const keyId = /(?<![a-z0-9])[a-z2-7]{16}(?![a-z0-9])/g;

/** Values that get no numbered name: only their presence and form are recorded. */
const varying: readonly [RegExp, string][] = [
  [/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00(:00)?)/g, "<time>"],
  [/(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT/g, "<date>"],
  [/127\.0\.0\.1:\d+/g, "<address>"],
  [/("(?:duration_ms|lateness_ms|response_time_ms)":)\d+/g, "$1<milliseconds>"],
  [/("last_(?:used|evaluated)_at":)("<time>"|null)/g, "$1<time or null>"],
  [/("month":)"\d{4}-\d\d"/g, '$1"<month>"'],
  [/("used":)\d+/g, "$1<number>"],
  [/((?:sha256=|v1,))[A-Za-z0-9+/=]{40,}/g, "$1<signature>"],
  [/("(?:signature|secret_sha256|content_hash|hash|previous_hash)":)"[^"]+"/g, '$1"<digest>"'],
  [/(#(?:invitation|link)=)[\w-]{43}/g, "$1<code>"],
  [/(token=)[\w.-]{20,}/g, "$1<token>"],
  [/("monthly";q=\d+;w=)\d+/g, "$1<seconds of the month>"],
  [/\b(r|t)=\d+/g, "$1=<number>"],
  [/^(retry-after: )\d+$/gim, "$1<seconds>"],
  [/^(x-service-delivery|webhook-timestamp): .*$/gim, "$1: <varying>"],
  [/^(user-agent: Halyard\/)\d+\.\d+\.\d+$/gim, "$1<version>"],
  [/^(x-request-id: )(?!mine$).*$/gim, "$1<request id>"],
  [/("next_cursor":)"[\w-]+"/g, '$1"<cursor>"'],
  [/(\\+x)[0-9a-f]{16,}/g, "$1<bytes>"],
  [/("days":)\[[^\]]*\]/g, '$1"<days>"'],
  [/("known_since":)(?:"[^"]*"|null)/g, '$1"<day or null>"'],
  [/("(?:month|day)":)"\d{4}-\d\d-\d\d"/g, '$1"<day>"'],
  [/("news":)"\w+"/g, '$1"<state>"'],
  [/("timestamp":)\d+/g, "$1<seconds>"],
  [/^(retry: )\d+$/gm, "$1<milliseconds>"],
];

export function createMask(
  names = new Map<string, string>(),
  numbers = new Map<string, number>(),
): Mask {
  function nameOf(kind: string, value: string): string {
    const known = names.get(value);
    if (known !== undefined) return known;
    const number = (numbers.get(kind) ?? 0) + 1;
    numbers.set(kind, number);
    const name = `<${kind} ${number}>`;
    names.set(value, name);
    return name;
  }

  const mask = (text: string) => {
    const constant = varying.reduce((masked, [found, by]) => masked.replace(found, by), text);
    return constant
      .replace(apiKey, (key, kind: string, id: string) => {
        nameOf("key id", id);
        return nameOf(kind === "hs" ? "server key" : "client key", key);
      })
      .replace(keyId, (id) => names.get(id) ?? id)
      .replace(uuid, (id) => nameOf("id", id))
      .replace(/"(?:2\.)?[\w-]{20,}"(?=\s|,|$)/gm, (tag) => nameOf("etag", tag))
      .replace(/^(id: ?)([\w"-]{11,})$/gm, (_, field: string, tag: string) => {
        return field + nameOf("etag", tag.startsWith('"') ? tag : `"${tag}"`);
      });
  };
  return Object.assign(mask, { fork: () => createMask(new Map(names), new Map(numbers)) });
}
