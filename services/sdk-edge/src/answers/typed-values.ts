import { hash } from "node:crypto";
import { type EvaluationContext, emptyContext } from "@halyard/evaluation";
import { shortHash } from "./digests.ts";
import type { EnvironmentView } from "./environment-view.ts";
import { createFlagBodies, type FlagBodies } from "./flag-bodies.ts";
import type { FlagKeys } from "./flag-keys.ts";
import type { FlagValues } from "./flag-values.ts";
import { digestBytes, type VariationText } from "./variation-texts.ts";

/** The values of all flags in their types, and their variations: `{"values":{…}}`, in the order of the keys. */

/** The members of boolean flags by value. */
export const booleanMembers = {
  true: '{"value":true,"variation":"on"}',
  false: '{"value":false,"variation":"off"}',
} as const;

/** Returns the values for a context. Those for the empty context are prepared once for each view. */
export function typedValuesFor(view: EnvironmentView, context: EvaluationContext): FlagValues {
  if (context !== emptyContext) return evaluateAndWrite(view, context);
  let values = withoutContext.get(view);
  if (values === undefined) {
    values = evaluateAndWrite(view, context);
    withoutContext.set(view, values);
  }
  return values;
}

const withoutContext = new WeakMap<EnvironmentView, FlagValues>();

function evaluateAndWrite(view: EnvironmentView, context: EvaluationContext): FlagValues {
  const outcomeCodes = view.outcomesFor(context);
  return typedValuesOf(view, outcomeCodes, view.variationsFor(context, outcomeCodes));
}

/** Returns the values of evaluated outcomes and variations. The body is written when it is first read: a 304 has none. */
export function typedValuesOf(
  view: EnvironmentView,
  outcomeCodes: Uint8Array,
  variations: readonly VariationText[],
): FlagValues {
  const booleans = booleansOf(view, outcomeCodes);
  return new LazyValues(tagOf(view, booleans, variations), () =>
    bodiesOf(view.keys)(booleans, { flags: view.typed, texts: variations.map(({ member }) => member) }, "}}"),
  );
}

class LazyValues implements FlagValues {
  readonly etag: string;
  readonly #write: () => string;
  #body: string | undefined;

  constructor(etag: string, write: () => string) {
    this.etag = etag;
    this.#write = write;
  }

  get body(): string {
    this.#body ??= this.#write();
    return this.#body;
  }
}

export function typedTagOf(
  view: EnvironmentView,
  outcomeCodes: Uint8Array,
  variations: readonly VariationText[],
): string {
  return tagOf(view, booleansOf(view, outcomeCodes), variations);
}

/** Returns 1 for each boolean flag with the value true, and 0 for all others. */
function booleansOf({ typed }: EnvironmentView, outcomeCodes: Uint8Array): Uint8Array {
  const booleans = Buffer.allocUnsafe(outcomeCodes.length);
  for (let flag = 0; flag < booleans.length; flag += 1)
    booleans[flag] = (outcomeCodes[flag] as number) & 1;
  for (const { position } of typed) booleans[position] = 0;
  return booleans;
}

/** Marks a typed flag in tags. Boolean flags have 0 or 1. */
const typedMark = 2;

/**
 * Returns the tag of the values: a hash of the keys, the values of boolean flags, and the texts of the variations of
 * typed ones. Equal values have the same tag on every edge, regardless of the rules and of the other variations.
 */
function tagOf(
  { keys: { digest, size }, typed }: EnvironmentView,
  booleans: Uint8Array,
  variations: readonly VariationText[],
): string {
  const variationsAt = digest.length + size;
  const bytes = Buffer.allocUnsafe(variationsAt + variations.length * digestBytes);
  bytes.set(digest);
  bytes.set(booleans, digest.length);
  for (const { position } of typed) bytes[digest.length + position] = typedMark;
  variations.forEach((variation, index) => {
    bytes.set(variation.digest, variationsAt + index * digestBytes);
  });
  return `"${shortHash(hash("sha256", bytes, "base64url"))}"`;
}

const bodies = new WeakMap<FlagKeys, FlagBodies>();

function bodiesOf(keys: FlagKeys): FlagBodies {
  let write = bodies.get(keys);
  if (write === undefined) {
    write = createFlagBodies(keys, layout);
    bodies.set(keys, write);
  }
  return write;
}

const layout = {
  begin: '{"values":{',
  beforeKey: "",
  afterKey: ":",
  texts: [booleanMembers.false, booleanMembers.true],
  afterText: "",
  maxEndBytes: 2,
};
