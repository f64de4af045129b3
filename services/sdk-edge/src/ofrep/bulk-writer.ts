import { hash } from "node:crypto";
import type { EnvironmentView } from "../environment/environment-view.ts";
import { type FlagKeys, joinTemplates, type TemplateShape } from "../environment/flag-keys.ts";
import { shortHash } from "../environment/short-hash.ts";
import { outcomeTexts } from "./evaluation-json.ts";

/**
 * Turns outcomes, one byte a flag, into the body of a bulk evaluation and its tag.
 *
 * The text of every outcome is padded to the length of the longest, so that each has its place in the
 * body. The body of the last answer is kept as bytes; for the next one only the outcomes that differ
 * are written over, and the bytes are copied out. When all clients of an environment ask at once after
 * a change, that is what each of them costs.
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
    writer = createBulkWriter(view.keys);
    writers.set(view, writer);
  }
  return writer;
}

/** What the body says after the flags, and the hour for which it says that. */
export type StreamOffer = { hour: number; json: string };

/** More than an offer is long; all but the path of its URL has a fixed length. */
const longestOfferBytes = 512;

/** Creates a writer for one view; views with the same keys share everything. */
export function createBulkWriter(keys: FlagKeys): BulkWriter {
  const { tagged, bodies } = bulkTextOf(keys);
  return {
    outcomeNumbers: tagged.outcomeNumbers,
    tag: ({ json }) => `"${shortHash(tagged.hashWith(json))}"`,
    body: (offer) => bodies.write(tagged.outcomeNumbers, offer.json),
  };
}

type BulkText = {
  tagged: ReturnType<typeof createTagged>;
  bodies: ReturnType<typeof createBodies>;
};

const texts = new WeakMap<FlagKeys, BulkText>();

function bulkTextOf(keys: FlagKeys): BulkText {
  let text = texts.get(keys);
  if (text === undefined) {
    text = { tagged: createTagged(keys), bodies: createBodies(keys) };
    texts.set(keys, text);
  }
  return text;
}

const longestOutcome = Math.max(...outcomeTexts.map((text) => text.length));
const paddedOutcomes = outcomeTexts.map((text) => Buffer.from(text.padEnd(longestOutcome)));

const shape: TemplateShape = {
  beforeKey: '{"key":',
  afterKey: "",
  place: (outcomeTexts[0] as string).padEnd(longestOutcome),
  afterPlace: "}",
};

/** The body's bytes, with room for the offer behind the flags. */
function createBodies(keys: FlagKeys) {
  const ends = { begin: '{"flags":[', end: "]", spareBytes: longestOfferBytes };
  const { bytes, places, length } = joinTemplates(keys, shape, ends);
  const written = new Uint8Array(keys.size);
  return {
    write(outcomeNumbers: Uint8Array, offer: string): string {
      for (let index = 0; index < outcomeNumbers.length; index += 1) {
        const number = outcomeNumbers[index] as number;
        if (number === written[index]) continue;
        bytes.set(paddedOutcomes[number] as Buffer, places[index]);
        written[index] = number;
      }
      return bytes.toString("latin1", 0, length + bytes.write(offer, length, "latin1"));
    },
  };
}

/** What a tag is made of, side by side, so that it is hashed in one go: keys, outcomes, offer. */
function createTagged(keys: FlagKeys) {
  const keysHash = keys.digest;
  const offerAt = keysHash.length + keys.size;
  const bytes = Buffer.alloc(offerAt + longestOfferBytes);
  bytes.set(keysHash);
  return {
    outcomeNumbers: new Uint8Array(bytes.buffer, bytes.byteOffset + keysHash.length, keys.size),
    hashWith(offer: string): string {
      const length = offerAt + bytes.write(offer, offerAt, "latin1");
      return hash("sha256", bytes.subarray(0, length), "base64url");
    },
  };
}
