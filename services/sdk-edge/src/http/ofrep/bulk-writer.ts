import { createFlagBodies, type OwnTexts } from "../../answers/flag-bodies.ts";
import type { FlagKeys } from "../../answers/flag-keys.ts";
import { createFlagTags, type TypedVariations } from "../../answers/flag-tags.ts";
import { outcomeTexts } from "./evaluation-json.ts";

/** Converts outcomes, one byte per flag, into the body of a bulk evaluation and its tag. */
type BulkWriter = {
  /**
   * Returns the tag of the outcomes, the typed flags with their variations, the unmet requirements, and the offer. Equal
   * ones have the same tag on every edge.
   */
  tag(outcomeCodes: Uint8Array, offer: string, typed?: TypedVariations): string;
  /**
   * Returns the body as a string of bytes. The offer is the JSON after the flags: a member with a comma before it, or
   * "".
   */
  body(outcomeCodes: Uint8Array, offer: string, own?: OwnTexts): string;
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

const layout = {
  begin: '{"flags":[',
  beforeKey: '{"key":',
  afterKey: "",
  texts: outcomeTexts,
  afterText: "}",
  maxEndBytes: maxOfferBytes,
};

const noOwn: OwnTexts = { flags: [], texts: [] };

function createBodies(keys: FlagKeys): BulkWriter["body"] {
  const write = createFlagBodies(keys, layout);
  return (outcomeCodes, offer, own = noOwn) => write(outcomeCodes, own, `]${offer}}`);
}

const noVariations: TypedVariations = { flags: [], variations: [] };

function createTags(keys: FlagKeys): BulkWriter["tag"] {
  const tagOf = createFlagTags(keys, maxOfferBytes);
  return (outcomeCodes, offer, typed = noVariations) => tagOf(outcomeCodes, typed, `${offer}}`);
}
