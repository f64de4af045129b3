import { z } from "zod";
import { toJsonSchema } from "../json-schema.ts";

/**
 * Schemas of the user's context in bodies. The edge does not run them, because its parsers also convert the values
 * (`services/sdk-edge/src/context`). `body-schemas.test.ts` there compares the parsers with these schemas, so that
 * neither can change alone.
 */
const Scalar = z.union([z.string(), z.number(), z.boolean()]);

export const AttributeValue = z
  .union([Scalar, z.array(Scalar), z.null()])
  .describe("A string, a number, a boolean, or an array of these. `null` counts as missing");

const userId = z
  .union([z.string(), z.number()])
  .nullable()
  .optional()
  .describe("The user's id. A number counts by its JSON text; an empty string counts as missing");

const ids = {
  id: userId,
  user_id: userId.describe("The same as `id`. If both are set, `id` wins"),
};

export const UserAttributes = withAttributes(ids);

export const ContextUser = withAttributes({
  ...ids,
  attributes: UserAttributes.nullable().optional(),
});

/**
 * Returns the schema of an object whose other members are attributes. They match a pattern, because programs that
 * generate types require the known members to have the type of `additionalProperties` too.
 */
function withAttributes<Known extends z.ZodRawShape>(known: Known) {
  const others = `^(?!(?:${Object.keys(known).join("|")})$)`;
  const patternProperties = { [others]: toJsonSchema(AttributeValue) };
  return z.looseObject(known).meta({ patternProperties });
}

/** The body of the SDK endpoints. */
export const UserContext = withAttributes({
  ...ids,
  user: z
    .union([ContextUser, AttributeValue])
    .optional()
    .describe(
      "The user as an object. Its `id` overrides its `attributes`, these override its other members, and these override the members beside `user`. A value other than an object is an attribute named `user`",
    ),
}).describe("Attributes of the user, side by side or below `user`");

/** OpenFeature contexts can contain anything; objects count as missing. */
const ofrepId = z
  .union([z.string(), z.number(), z.null(), z.looseObject({})])
  .optional()
  .describe("The user's id if there is no `targetingKey`");

const contextWithTargetingKey = z.looseObject({
  targetingKey: z
    .union([z.string().min(1), z.number()])
    .describe(
      "The user's id, which is the attribute `id` in rules. `id` and `user_id` beside it are ignored",
    ),
});

const contextWithoutTargetingKey = z.looseObject({
  targetingKey: z.string().max(0).nullable().optional(),
  id: ofrepId,
  user_id: ofrepId,
});

export const OfrepContext = z
  .union([contextWithTargetingKey, contextWithoutTargetingKey])
  .describe(
    "The user. Attributes are strings, numbers, booleans, or arrays of these. Objects, and elements of arrays that are not strings, numbers or booleans, count as missing",
  );
