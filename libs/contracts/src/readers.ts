import { z } from "zod";

/**
 * A reader: an SDK that evaluates the rule set of an environment in an application. Reports of usage identify it, so
 * that users learn which applications do not know what a flag needs. Nothing identifies the application or its users.
 */
export const readerFields = {
  name: z
    .string()
    .regex(/^[A-Za-z0-9@][A-Za-z0-9@/._-]{0,63}$/)
    .describe("must be 1 to 64 letters, digits, `@`, `/`, dots, underscores or hyphens"),
  version: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9.+_-]{0,63}$/)
    .describe("must be 1 to 64 letters, digits, dots, plus signs, underscores or hyphens"),
  knows: z
    .array(z.string().regex(/^[a-z][a-z0-9-]{0,31}$/))
    .max(32)
    .describe(
      "The features that it supports: the words that `needs` of a flag in the rule set may have",
    ),
};

/** A reader in a message. */
export const Reader = z.object(readerFields);
export type Reader = z.infer<typeof Reader>;
