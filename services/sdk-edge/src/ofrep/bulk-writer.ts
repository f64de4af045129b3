import { createHash, hash } from "node:crypto";
import type { EnvironmentView } from "../environment/environment-view.ts";
import { keptAnswers } from "../environment/kept-answers.ts";
import { shortHash } from "../environment/short-hash.ts";
import { beginningFor, outcomeTexts } from "./evaluation-json.ts";

/**
 * Turns outcomes, one byte a flag, into the body of a bulk evaluation and its tag.
 *
 * The text of every outcome is padded to the length of the longest, so that each has its place in the
 * body. The body of the last answer is kept as bytes; for the next one only the outcomes that differ
 * are written over, and the bytes are copied out. When all clients of an environment ask at once after
 * a change, that is what each of them costs, unless its answer was given before: of those the first
 * ones are kept.
 */
export type BulkWriter = {
  /** One byte for each flag, to be filled with the numbers of outcomes before the other two are called. */
  readonly outcomeNumbers: Uint8Array;
  /** Names the outcomes and the offer. The same ones have the same tag on every edge. */
  tag(offer: StreamOffer): string;
  /** The body that the tag names. */
  body(offer: StreamOffer, tag: string): string;
};

const writers = new WeakMap<EnvironmentView, BulkWriter>();

/** The writer of a view, which is made when the first OFREP client asks for it. */
export function bulkWriterOf(view: EnvironmentView): BulkWriter {
  let writer = writers.get(view);
  if (writer === undefined) {
    writer = createBulkWriter(view.flags.map(({ key }) => key));
    writers.set(view, writer);
  }
  return writer;
}

/** What the body says after the flags, and the hour for which it says that. */
export type StreamOffer = { hour: number; json: string };

/** More than an offer is long; all but the path of its URL has a fixed length. */
const longestOfferBytes = 512;

export function createBulkWriter(keys: readonly string[]): BulkWriter {
  const { bytes, places, flagsLength } = template(keys);
  const written = new Uint8Array(keys.length);
  const tagged = createTagged(keys);
  const kept = keptAnswers.open<string>();
  let keptHour = 0;

  function writeOver(outcomeNumbers: Uint8Array): void {
    for (let index = 0; index < outcomeNumbers.length; index += 1) {
      const number = outcomeNumbers[index] as number;
      if (number === written[index]) continue;
      bytes.set(paddedOutcomes[number] as Buffer, places[index]);
      written[index] = number;
    }
  }

  return {
    outcomeNumbers: tagged.outcomeNumbers,
    tag: ({ json }) => `"${shortHash(tagged.hashWith(json))}"`,
    body(offer, tag) {
      if (offer.hour !== keptHour) {
        kept.clear();
        keptHour = offer.hour;
      }
      const known = kept.get(tag);
      if (known !== undefined) return known;
      writeOver(tagged.outcomeNumbers);
      const length = flagsLength + bytes.write(offer.json, flagsLength, "latin1");
      const body = bytes.toString("latin1", 0, length);
      kept.keep(tag, body, length);
      return body;
    },
  };
}

const longestOutcome = Math.max(...outcomeTexts.map((text) => text.length));
const paddedOutcomes = outcomeTexts.map((text) => Buffer.from(text.padEnd(longestOutcome)));

/** The body with the first outcome everywhere, where each stands, and room for what follows. */
function template(keys: readonly string[]) {
  const places = new Int32Array(keys.length);
  const parts = ['{"flags":['];
  let length = parts[0]?.length ?? 0;
  keys.forEach((key, index) => {
    const beginning = `${index === 0 ? "" : ","}${beginningFor(key)}`;
    places[index] = length + beginning.length;
    parts.push(beginning, (outcomeTexts[0] as string).padEnd(longestOutcome), "}");
    length += beginning.length + longestOutcome + 1;
  });
  parts.push("]");
  const flagsLength = length + 1;
  const bytes = Buffer.alloc(flagsLength + longestOfferBytes);
  bytes.write(parts.join(""), "latin1");
  return { bytes, places, flagsLength };
}

/** What a tag is made of, side by side, so that it is hashed in one go: keys, outcomes, offer. */
function createTagged(keys: readonly string[]) {
  const keysHash = createHash("sha256").update(JSON.stringify(keys)).digest();
  const offerAt = keysHash.length + keys.length;
  const bytes = Buffer.alloc(offerAt + longestOfferBytes);
  bytes.set(keysHash);
  return {
    outcomeNumbers: new Uint8Array(bytes.buffer, bytes.byteOffset + keysHash.length, keys.length),
    hashWith(offer: string): string {
      const length = offerAt + bytes.write(offer, offerAt, "latin1");
      return hash("sha256", bytes.subarray(0, length), "base64url");
    },
  };
}
