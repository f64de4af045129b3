import type { TypedFlag } from "./environment-view.ts";
import { asciiJson, type FlagKeys } from "./flag-keys.ts";
import type { VariationText } from "./variation-texts.ts";

/**
 * Writes the values of all flags of a view.
 *
 * As in `createFlagBodies`, each flag has a fixed position, the bytes of the last body are kept, and only the texts that
 * differ are overwritten. The texts of a typed flag are padded with spaces to its longest one. Splicing texts of different
 * lengths into the body takes twice as long (`npm run bench -- targeting`, a third typed). Flags with long texts are
 * spliced, because the padding would be sent.
 */
export type TypedBodies = (
  /** 1 for each boolean flag with the value true, and 0 for all others. */
  booleans: Uint8Array,
  variations: readonly VariationText[],
) => string;

/** Maximum number of spaces after a text. */
const maxPadding = 64;

type Template = { begin: string; end: string; booleans: readonly [no: string, yes: string] };

export function createTypedBodies(
  { segments }: FlagKeys,
  typed: readonly TypedFlag[],
  { begin, end, booleans }: Template,
): TypedBodies {
  const width = Math.max(...booleans.map((text) => text.length));
  const padded = booleans.map((text) => Buffer.from(text.padEnd(width)));
  const places = typed.map(({ position, flag }) => placeOf(position, flag.variationTexts()));
  const placeAt = new Map(places.map((place) => [place.position, place]));
  const keys = segments.flatMap((segment) => segment.keys);
  const starts = new Int32Array(keys.length);
  let text = begin;
  keys.forEach((key, position) => {
    text += `${position === 0 ? "" : ","}${asciiJson(key)}:`;
    starts[position] = text.length;
    text += placeAt.has(position)
      ? " ".repeat(placeAt.get(position)?.width ?? 0)
      : booleans[0].padEnd(width);
  });
  const bytes = Buffer.from(text + end, "latin1");
  const written = new Uint8Array(keys.length);
  return (numbers, variations) => {
    for (let index = 0; index < numbers.length; index += 1) {
      const number = numbers[index] as number;
      if (number === written[index]) continue;
      overwrite(bytes, starts[index] as number, padded[number] as Buffer);
      written[index] = number;
    }
    let isSpliced = false;
    for (let index = 0; index < places.length; index += 1) {
      const place = places[index] as Place;
      const variation = variations[index] as VariationText;
      if (place.texts === undefined) isSpliced = true;
      else if (variation !== place.shown) {
        const next = place.texts.get(variation) as Buffer;
        overwrite(bytes, starts[place.position] as number, next);
        place.shown = variation;
      }
    }
    const body = bytes.toString("latin1");
    return isSpliced ? splice(body, { places, starts, variations }) : body;
  };
}

/** The position of a typed flag, whose texts have a fixed width; without `texts`, they are spliced. */
type Place = {
  position: number;
  width: number;
  texts: ReadonlyMap<VariationText, Buffer> | undefined;
  /** The variation in the kept bytes. */
  shown: VariationText | undefined;
};

function placeOf(position: number, variations: readonly VariationText[]): Place {
  const lengths = variations.map(({ member }) => member.length);
  const width = Math.max(...lengths);
  if (width - Math.min(...lengths) > maxPadding)
    return { position, width: 0, texts: undefined, shown: undefined };
  const texts = new Map(
    variations.map((each) => [each, Buffer.from(each.member.padEnd(width), "latin1")]),
  );
  return { position, width, texts, shown: undefined };
}

/** Writes byte by byte, because a call of `Buffer.set` costs more than a short text does. */
function overwrite(bytes: Buffer, at: number, text: Buffer): void {
  for (let index = 0; index < text.length; index += 1) bytes[at + index] = text[index] as number;
}

/** Inserts the texts of the flags whose texts are not padded. */
function splice(
  body: string,
  {
    places,
    starts,
    variations,
  }: { places: readonly Place[]; starts: Int32Array; variations: readonly VariationText[] },
): string {
  let result = "";
  let from = 0;
  places.forEach(({ position, texts }, index) => {
    if (texts !== undefined) return;
    const at = starts[position] as number;
    result += body.slice(from, at) + (variations[index] as VariationText).member;
    from = at;
  });
  return result + body.slice(from);
}
