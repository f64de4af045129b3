import { type FlagKeys, joinTemplates } from "./flag-keys.ts";

/**
 * Writes a body with one of a few texts for each flag: that of its outcome, or of its value.
 *
 * Every text is padded to the length of the longest, so that its position in the body is fixed. The bytes of the last
 * body are kept, and only the texts that differ are overwritten (`npm run bench -- targeting`, OFREP). Texts of
 * any length, such as those of typed flags, replace those at their positions.
 */
type FlagBodies = (
  /** The number of the text of each flag. */
  numbers: Uint8Array,
  own: OwnTexts,
  /** The end of the body, in ASCII. */
  end: string,
) => string;

/** The individual texts of some flags, such as typed ones, in the order of their positions. */
export type OwnTexts = {
  readonly flags: readonly { readonly position: number }[];
  readonly texts: readonly string[];
};

/** A flag is written as `beforeKey`, its key, `afterKey`, one of the texts, and `afterText`. */
type Layout = {
  begin: string;
  beforeKey: string;
  afterKey: string;
  texts: readonly string[];
  afterText: string;
  /** Maximum length of the end. */
  maxEndBytes: number;
};

/** Returns a function that prepares the body when it writes the first one. */
export function createFlagBodies(keys: FlagKeys, layout: Layout): FlagBodies {
  let write: FlagBodies | undefined;
  return (numbers, typed, end) => {
    write ??= prepareBodies(keys, layout);
    return write(numbers, typed, end);
  };
}

function prepareBodies(keys: FlagKeys, layout: Layout): FlagBodies {
  const { begin, beforeKey, afterKey, texts, afterText, maxEndBytes } = layout;
  const width = Math.max(...texts.map((text) => text.length));
  const padded = texts.map((text) => Buffer.from(text.padEnd(width)));
  const position = (texts[0] as string).padEnd(width);
  const shape = { beforeKey, afterKey, position, afterPosition: afterText };
  const ends = { begin, end: "", spareBytes: maxEndBytes };
  const { bytes, positions, length } = joinTemplates(keys, shape, ends);
  const written = new Uint8Array(keys.size);
  return (numbers, own, end) => {
    for (let index = 0; index < numbers.length; index += 1) {
      const number = numbers[index] as number;
      if (number === written[index]) continue;
      bytes.set(padded[number] as Buffer, positions[index]);
      written[index] = number;
    }
    const body = bytes.toString("latin1", 0, length + bytes.write(end, length, "latin1"));
    return own.flags.length === 0 ? body : withOwn(body, own, { positions, width });
  };
}

/** Replaces the texts of the flags that have their own. */
function withOwn(
  body: string,
  { flags, texts }: OwnTexts,
  { positions, width }: { positions: Int32Array; width: number },
): string {
  let written = "";
  let from = 0;
  for (let index = 0; index < flags.length; index += 1) {
    const at = positions[(flags[index] as { position: number }).position] as number;
    written += body.slice(from, at) + (texts[index] as string);
    from = at + width;
  }
  return written + body.slice(from);
}
