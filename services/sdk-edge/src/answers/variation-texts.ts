import { hash } from "node:crypto";
import type { FlagEntry } from "@halyard/contracts";

/**
 * The texts of a variation in responses, prepared once for each version of a flag. They are strings of bytes: each
 * character is one byte of the UTF-8, so that they are joined with ASCII and sent as Latin-1. They contain the value as
 * it was written, because `JSON.parse` would lose the texts of numbers and the order of members.
 */
export type VariationText = {
  /** As a member of `values`. */
  readonly member: string;
  /** In an OFREP evaluation: the members before the text of the reason, and after it. */
  readonly beforeReason: string;
  readonly afterReason: string;
  /** Identifies all of these texts. Has `digestBytes`. */
  readonly digest: Buffer;
};

/** 128 bits, so that two texts practically never share a digest. */
export const digestBytes = 16;

/** Returns the texts of the variations of a typed flag in order, and after them the text of the caller's default. */
export function variationTextsOf({ value_type, variations = [] }: FlagEntry): VariationText[] {
  const isDecimal = value_type === "number" && variations.some(({ json }) => hasFraction(json));
  const texts = variations.map(({ key, json }) => {
    const variant = JSON.stringify(key);
    const ofrepValue = isDecimal && !hasFraction(json) ? `${json}.0` : json;
    return textOf({
      member: `{"value":${json},"variation":${variant}}`,
      beforeReason: `,"value":${ofrepValue},"reason":"`,
      afterReason: `","variant":${variant}`,
    });
  });
  return [...texts, callersDefaultText];
}

/**
 * Returns whether a number is written with a fraction or an exponent. Some OFREP providers take `1` and `1.5` for
 * different types, so the values of a flag are either all written as integers or all with a fraction.
 */
function hasFraction(json: string): boolean {
  return /[.eE]/.test(json);
}

function textOf(texts: Omit<VariationText, "digest">): VariationText {
  const { member, beforeReason, afterReason } = texts;
  const all = `${member}${beforeReason}${afterReason}`;
  return {
    member: byteString(member),
    beforeReason: byteString(beforeReason),
    afterReason: byteString(afterReason),
    digest: hash("sha256", all, "buffer").subarray(0, digestBytes),
  };
}

/**
 * Returns a string with one character for each byte of a text in UTF-8. It is in one piece, while V8 keeps the parts of
 * a joined string until its first use: joining such strings again takes three times as long.
 */
function byteString(text: string): string {
  return Buffer.from(text).toString("latin1");
}

/** OFREP providers return the default of their caller for an evaluation without a value. Python's needs a variant. */
const callersDefaultText = textOf({
  member: '{"value":null,"variation":null}',
  beforeReason: ',"reason":"',
  afterReason: '","variant":""',
});
