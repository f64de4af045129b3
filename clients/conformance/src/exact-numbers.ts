/**
 * JSON whose numbers keep their notation. The cases contain `5.0`, `1e2` and `9007199254740993`, because a parser must
 * read them as the nearest double. `JSON.stringify` would write 5, 100 and 9007199254740992.
 */

/** Marks the text of a number while it is a JSON string. No case contains such a text. */
const mark = "\u0000number:";

const stringsAndNumbers = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const beyondAscii = /[\u007f-\uffff]/g;
const markedNumbers = /"\\u0000number:([^"]*)"/g;

/** A number as it is written in the text. Arithmetic uses its value. */
class ExactNumber {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  valueOf(): number {
    return Number(this.#text);
  }

  toJSON(): string {
    return mark + this.#text;
  }
}

/** Parses JSON. Numbers become objects that {@link stringifyExact} writes as they were. */
export function parseExact(json: string): unknown {
  const marked = json.replace(stringsAndNumbers, (token) =>
    token.startsWith('"') ? token : JSON.stringify(mark + token),
  );
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === "string" && value.startsWith(mark)
      ? new ExactNumber(value.slice(mark.length))
      : value,
  );
}

/** Writes JSON in ASCII, so that a program's encoding and its idea of a line break do not matter. */
export function stringifyExact(value: unknown): string {
  return JSON.stringify(value)
    .replace(markedNumbers, "$1")
    .replace(beyondAscii, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
