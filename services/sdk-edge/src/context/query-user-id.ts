import { isWellEncoded, type Refusal, refuse } from "@halyard/service";

/**
 * Finds `user_id` in a query string, which is encoded as forms are: `+` is a space, and names may be
 * percent-encoded like values. All of the string has to be encoded well, as on every other route.
 */
const name = "user_id";

const notUtf8 = refuse("VALIDATION_001", "the query string is not valid UTF-8");
const givenTwice = refuse("VALIDATION_001", `query parameter /${name} must be given once`);

/** Whether the query may name the user, or has to be refused: quick, and never wrong with a no. */
function mayNameUser(query: string): boolean {
  return query !== "" && (query.includes(name) || query.includes("%"));
}

/** The user's id; "" when the query has none, or an empty one. */
export function readQueryUserId(query: string): string | Refusal {
  if (!mayNameUser(query)) return "";
  const isEncoded = query.includes("%");
  if (isEncoded && !isWellEncoded(query)) return notUtf8;

  let userId: string | undefined;
  for (let start = 0; start < query.length; ) {
    const ampersand = query.indexOf("&", start);
    const end = ampersand === -1 ? query.length : ampersand;
    const nameEnd = endOfName(query, start, end);
    if (isUserId(query, start, nameEnd, isEncoded)) {
      if (userId !== undefined) return givenTwice;
      userId = decode(query.slice(nameEnd + 1, Math.max(end, nameEnd + 1)), isEncoded);
    }
    start = end + 1;
  }
  return userId ?? "";
}

function endOfName(query: string, start: number, end: number): number {
  for (let at = start; at < end; at++) if (query[at] === "=") return at;
  return end;
}

function isUserId(query: string, start: number, end: number, isEncoded: boolean): boolean {
  if (end - start === name.length) return query.startsWith(name, start);
  return isEncoded && end > start && decode(query.slice(start, end), isEncoded) === name;
}

function decode(text: string, isEncoded: boolean): string {
  const spaced = text.includes("+") ? text.replaceAll("+", " ") : text;
  return isEncoded ? decodeURIComponent(spaced) : spaced;
}
