import { z } from "zod";
import { control, deceptive, formatting, loneSurrogate, upToPlane3 } from "../text-pattern.ts";

/** Fields that several resources share. Lengths are counted in Unicode code points. */

/** An id in a path or a query. A malformed id in a path has the same response as an unknown one. */
export const IdParam = z
  .string()
  .regex(/^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/)
  .describe("must be an id");

export const KeyIdParam = z.string().regex(/^[a-z2-7]{16}$/);

export const Id = z.string().meta({ format: "uuid" });

/** An instant in a response: UTC, milliseconds, `Z`. */
export const InstantOut = z.string().meta({ format: "date-time" });

/** A day in UTC, such as `2027-01-31`. */
export const UtcDate = z.string().meta({ format: "date", examples: ["2027-01-31"] });

/**
 * An instant in a request. Only the extended calendar format of ISO 8601 is accepted: programs read its rarer forms
 * differently, and a rejected time is better than a change at another time.
 */
export const InstantIn = z.string().meta({
  format: "date-time",
  description:
    "An instant in the extended calendar format of ISO 8601: `YYYY-MM-DDThh:mm[:ss[.fraction]]`, followed by `Z` or an offset, in upper case. Week dates, ordinal dates, 24:00 and leap seconds are not accepted",
  examples: ["2027-01-31T09:00:00Z", "2027-01-31T10:00:00+01:00"],
});

/** A used amount and its limit. */
export const Limited = z.strictObject({
  used: z.int().min(0),
  limit: z.int().min(0).nullable().describe("`null`: unlimited"),
});

/** Text that may have several lines. */
export const Description = z
  .string()
  .max(2_000)
  .regex(new RegExp(`^(?:[^${control}${loneSurrogate}]|[\\t\\n\\r])*$`, "u"))
  .describe("must be text without control characters other than tab and line breaks");

const addressPart = `[^\\s@${control}${loneSurrogate}${deceptive}${formatting}]+`;

/** The e-mail address of a user: one `@` between printable characters other than white space. */
export const Email = z
  .string()
  .min(3)
  .max(254)
  .regex(new RegExp(`^${upToPlane3}${addressPart}@${addressPart}$`, "u"))
  .describe("must be an e-mail address");
