import { z } from "zod";

/** Fields that several resources share. Lengths are counted in Unicode code points. */

/** An id in a path, where one that does not fit is answered like one that is unknown; or in a query. */
export const IdParam = z
  .string()
  .regex(/^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/)
  .describe("must be an id");

export const KeyIdParam = z.string().regex(/^[a-z2-7]{16}$/);

export const Id = z.string().meta({ format: "uuid" });

/** An instant that we answer: UTC, milliseconds, `Z`. */
export const InstantOut = z.string().meta({ format: "date-time" });

/**
 * An instant in a request. Only the extended calendar format of ISO 8601 is accepted: programs read its rarer forms
 * differently, and a rejected time is better than a change at another time.
 */
export const InstantIn = z.string().meta({
  format: "date-time",
  description:
    "An instant, `YYYY-MM-DDThh:mm[:ss[.fraction]]` with `Z` or an offset behind it, in upper case. ISO 8601 in its extended calendar format; no week dates or ordinal dates, no 24:00, no leap seconds",
  examples: ["2027-01-31T09:00:00Z", "2027-01-31T10:00:00+01:00"],
});

/** A name for people: one line, not blank, without control characters or broken Unicode. */
export const Name = z
  .string()
  .min(1)
  .max(200)
  .regex(/^(?=[\s\S]*\S)[^\p{Cc}\p{Cs}]+$/u)
  .describe("must be one line of text, not blank, without control characters");

/** Text that may have several lines. */
export const Description = z
  .string()
  .max(2_000)
  .regex(/^(?:[^\p{Cc}\p{Cs}]|[\t\n\r])*$/u)
  .describe("must be text without control characters other than tab and line breaks");

/** The e-mail address of a user: one `@` with something around it, and nothing unprintable. */
export const Email = z
  .string()
  .min(3)
  .max(254)
  .regex(/^[^\s@\p{C}]+@[^\s@\p{C}]+$/u)
  .describe("must be an e-mail address");
