import { type EvaluationContext, emptyContext } from "@halyard/evaluation";
import type { EnvironmentView, TypedFlag } from "./environment-view.ts";
import type { FlagKeys } from "./flag-keys.ts";
import { createFlagTags, type FlagTags } from "./flag-tags.ts";
import type { FlagValues } from "./flag-values.ts";
import { createTypedBodies, type TypedBodies } from "./typed-bodies.ts";
import type { VariationText } from "./variation-texts.ts";

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

/** Returns the values of evaluated outcomes and variations. */
export function typedValuesOf(
  view: EnvironmentView,
  outcomeCodes: Uint8Array,
  variations: readonly VariationText[],
): FlagValues {
  const { keys, typed: flags } = view;
  const booleans = booleansOf(view, outcomeCodes);
  return new LazyValues(tagsOf(keys)(booleans, { flags, variations }), () =>
    writerOf(view)(booleans, variations),
  );
}

/**
 * Returns the tag of the values. It depends on nothing but the values, so that it is the same on every edge, regardless
 * of the rules and of the other variations.
 */
export function typedTagOf(
  view: EnvironmentView,
  outcomeCodes: Uint8Array,
  variations: readonly VariationText[],
): string {
  const { keys, typed: flags } = view;
  return tagsOf(keys)(booleansOf(view, outcomeCodes), { flags, variations });
}

/**
 * Values whose body is written when it is first read: a 304 has none. It is a class, because V8 creates a hidden class
 * for every object literal with a getter. That doubled the time of evaluating and writing 100 flags in process.
 */
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

/** Returns 1 for each boolean flag with the value true, and 0 for all others. */
function booleansOf({ typed }: EnvironmentView, outcomeCodes: Uint8Array): Uint8Array {
  // Small buffers share memory. An array with its own memory takes a microsecond.
  const booleans = Buffer.allocUnsafe(outcomeCodes.length);
  for (let flag = 0; flag < booleans.length; flag += 1)
    booleans[flag] = (outcomeCodes[flag] as number) & 1;
  for (const { position } of typed) booleans[position] = 0;
  return booleans;
}

const tags = new WeakMap<FlagKeys, FlagTags>();

function tagsOf(keys: FlagKeys): FlagTags {
  let tagOf = tags.get(keys);
  if (tagOf === undefined) {
    tagOf = createFlagTags(keys, 0);
    tags.set(keys, tagOf);
  }
  return tagOf;
}

/** The newest writer for some keys, with the typed flags whose texts it has. */
type PreparedWriter = { typed: readonly TypedFlag[]; write: TypedBodies };
const writers = new WeakMap<FlagKeys, PreparedWriter>();

/**
 * Returns the writer of a view. Views share it while their keys and typed flags are the same, so that a change of a
 * boolean flag does not prepare the whole body again (`TypedBodies`).
 */
export function writerOf({ keys, typed }: EnvironmentView): TypedBodies {
  const known = writers.get(keys);
  if (known?.typed === typed) return known.write;
  const write =
    known !== undefined && areSame(known.typed, typed)
      ? known.write
      : createTypedBodies(keys, typed, template);
  writers.set(keys, { typed, write });
  return write;
}

/** Compares the typed flags of views with the same keys, whose positions therefore differ only with the flags. */
function areSame(some: readonly TypedFlag[], others: readonly TypedFlag[]): boolean {
  return (
    some.length === others.length && some.every(({ flag }, index) => flag === others[index]?.flag)
  );
}

const template = {
  begin: '{"values":{',
  end: "}}",
  booleans: [booleanMembers.false, booleanMembers.true],
} as const;
