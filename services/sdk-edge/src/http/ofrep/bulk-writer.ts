import { hash } from "node:crypto";
import { shortHash } from "../../answers/digests.ts";
import { type FlagKeys, joinTemplates, type TemplateShape } from "../../answers/flag-keys.ts";
import { outcomeTexts } from "./evaluation-json.ts";

/**
 * Converts outcomes, one byte per flag, into the body of a bulk evaluation and its tag.
 *
 * The text of every outcome is padded to the length of the longest, so that its position in the body is fixed. The
 * bytes of the last body are kept, and only the outcomes that differ are overwritten (`npm run bench -- targeting`,
 * OFREP).
 */
type BulkWriter = {
  /** Returns the tag of the outcomes and the offer. Equal outcomes and offers have the same tag on every edge. */
  tag(outcomeCodes: Uint8Array, offer: string): string;
  /** Returns the body. The offer is the JSON after the flags: a member with a comma before it, or "". */
  body(outcomeCodes: Uint8Array, offer: string): string;
};

const writers = new WeakMap<FlagKeys, BulkWriter>();

/** Returns the writer for flags with these keys, which is created when the first OFREP client needs it. */
export function bulkWriterOf(keys: FlagKeys): BulkWriter {
  let writer = writers.get(keys);
  if (writer === undefined) {
    writer = { tag: createTags(keys), body: createBodies(keys) };
    writers.set(keys, writer);
  }
  return writer;
}

/** Maximum size of an offer, with room to spare. Everything in an offer but the path of its URL has a fixed length. */
const maxOfferBytes = 512;

const longestOutcome = Math.max(...outcomeTexts.map((text) => text.length));
const paddedOutcomes = outcomeTexts.map((text) => Buffer.from(text.padEnd(longestOutcome)));

const shape: TemplateShape = {
  beforeKey: '{"key":',
  afterKey: "",
  position: (outcomeTexts[0] as string).padEnd(longestOutcome),
  afterPosition: "}",
};

function createBodies(keys: FlagKeys): BulkWriter["body"] {
  const ends = { begin: '{"flags":[', end: "]", spareBytes: maxOfferBytes };
  const { bytes, positions, length } = joinTemplates(keys, shape, ends);
  const written = new Uint8Array(keys.size);
  return (outcomeCodes, offer) => {
    for (let index = 0; index < outcomeCodes.length; index += 1) {
      const code = outcomeCodes[index] as number;
      if (code === written[index]) continue;
      bytes.set(paddedOutcomes[code] as Buffer, positions[index]);
      written[index] = code;
    }
    return bytes.toString("latin1", 0, length + bytes.write(`${offer}}`, length, "latin1"));
  };
}

/** Hashes the keys, the outcomes and the offer, which are copied into one buffer. */
function createTags(keys: FlagKeys): BulkWriter["tag"] {
  const outcomesAt = keys.digest.length;
  const offerAt = outcomesAt + keys.size;
  const bytes = Buffer.alloc(offerAt + maxOfferBytes);
  bytes.set(keys.digest);
  return (outcomeCodes, offer) => {
    bytes.set(outcomeCodes, outcomesAt);
    const length = offerAt + bytes.write(`${offer}}`, offerAt, "latin1");
    return `"${shortHash(hash("sha256", bytes.subarray(0, length), "base64url"))}"`;
  };
}
