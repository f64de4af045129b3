/** ISO 8601, extended calendar format, with `Z` or an offset. Parsers disagree about the other forms. */
const shape =
  /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(Z|[+-]\d{2}(?::?\d{2})?)$/;

const outgoingLength = "2027-01-31T09:00:00.000Z".length;

/** Parses an instant into milliseconds since 1970. Returns undefined if the text is not a valid instant. */
export function parseInstant(text: string): number | undefined {
  if (text.length === outgoingLength) {
    // Fast path: Halyard writes most instants itself, and reading a snapshot parses a hundred thousand of them.
    const milliseconds = Date.parse(text);
    if (milliseconds >= 0 && new Date(milliseconds).toISOString() === text) return milliseconds;
  }
  const match = shape.exec(text);
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match
    .slice(1, 7)
    .map((part) => Number(part ?? "0")) as [number, number, number, number, number, number];
  const milliseconds = Number((match[7] ?? "").padEnd(3, "0").slice(0, 3));
  const offset = offsetMinutes(match[8] ?? "Z");
  if (offset === undefined || hour > 23 || minute > 59 || second > 59) return undefined;
  const utc = new Date(0);
  utc.setUTCFullYear(year, month - 1, day);
  // A day that does not exist in the month rolls over into the next month.
  if (utc.getUTCMonth() !== month - 1 || utc.getUTCDate() !== day) return undefined;
  utc.setUTCHours(hour, minute, second, milliseconds);
  return utc.getTime() - offset * 60_000;
}

/** Returns the minutes east of UTC, or undefined for an invalid offset. */
function offsetMinutes(text: string): number | undefined {
  if (text === "Z") return 0;
  const hours = Number(text.slice(1, 3));
  const minutes = Number(text.slice(3).replace(":", "") || "0");
  if (hours > 23 || minutes > 59) return undefined;
  return (text.startsWith("-") ? -1 : 1) * (hours * 60 + minutes);
}
