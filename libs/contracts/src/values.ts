import { z } from "zod";
import { Name } from "./name.ts";

/** The values of typed flags, and their distribution among users. */
export const ValueType = z.enum(["boolean", "string", "number", "object"]);
export type ValueType = z.infer<typeof ValueType>;

export const VariationKey = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/)
  .describe(
    "must be 1 to 64 letters, digits, dots, underscores or hyphens, a letter or digit first",
  );

/** A value in the type of its flag. Domain code checks the rest: that JSON Schema cannot express. */
export const TypedValue = z.union([z.string(), z.number(), z.record(z.string(), z.unknown())]);

/** The expected values by type, for messages about requests. */
export const expectedValue: Readonly<Record<Exclude<ValueType, "boolean">, string>> = {
  string: "a text, the type of the flag",
  number: "a number, the type of the flag",
  object: "a JSON object, the type of the flag",
};

/** The conditions of the schema of a new flag: no variations for a boolean flag, and values of the type for others. */
export function variationsByType(): object[] {
  const isAnyOf = (types: readonly string[]) => ({
    properties: { value_type: { enum: types } },
    required: ["value_type"],
  });
  const typed = Object.entries(expectedValue).map(([type, expected]) => ({
    if: isAnyOf([type]),
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: {
      required: ["variations"],
      properties: {
        variations: {
          items: { properties: { value: { description: `must be ${expected}`, type } } },
        },
      },
    },
  }));
  const description = "must be absent for a boolean flag, whose variations are on and off";
  const none = { properties: { variations: { description, not: {} } } };
  return [...typed, { if: isAnyOf(Object.keys(expectedValue)), else: none }];
}

/** Maximum number of variations of a flag. */
export const maxVariations = 50;

const Variation = z.strictObject({
  key: VariationKey,
  value: TypedValue,
  name: Name.optional(),
});

export const VariationsInput = z.array(Variation).min(1).max(maxVariations);

/** The variations in responses. Lists leave the values out unless a request includes them. */
export const Variations = z.array(Variation.partial({ value: true }));

/**
 * The variations as they are stored and published. A value is the JSON text that was sent, without white space: `jsonb`
 * and JavaScript would reorder members and rewrite numbers.
 */
export const StoredVariations = z.array(
  z.object({ key: z.string(), json: z.string(), name: z.string().optional() }),
);
export type StoredVariations = z.infer<typeof StoredVariations>;

const Weight = z.number().min(0).max(100).describe("Percentage with at most two decimals");
const Bucket = z.int().min(0).max(10_000);
const Ranges = z
  .array(z.tuple([Bucket, Bucket]))
  .max(500)
  .describe("Half-open ranges of buckets, in ascending order");

/** The served variation or split, in responses and messages. */
export const Serve = z.union([
  z.strictObject({ variation: VariationKey }),
  z.strictObject({
    split: z
      .array(z.strictObject({ variation: VariationKey, weight: Weight, ranges: Ranges }))
      .min(1)
      .max(maxVariations),
  }),
]);
export type Serve = z.infer<typeof Serve>;

/** The served variation or split, in requests. Without ranges, the service allocates them so that the fewest users move. */
export const ServeInput = z.union([
  z.strictObject({ variation: VariationKey }),
  z.strictObject({
    split: z
      .array(z.strictObject({ variation: VariationKey, weight: Weight, ranges: Ranges.optional() }))
      .min(1)
      .max(maxVariations),
  }),
]);
export type ServeInput = z.infer<typeof ServeInput>;
