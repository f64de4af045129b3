import { z } from "zod";
import { control, loneSurrogate } from "./text-pattern.ts";

/**
 * Characters that make a name look like another one: they show nothing, or reorder the text around them. They include
 * the joiners of composed emoji (decision 0096).
 */
const deceptive = String.raw`\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff`;

/** A display name: one line, not blank. Lengths are counted in Unicode code points. */
export const Name = z
  .string()
  .min(1)
  .max(200)
  .regex(new RegExp(String.raw`^(?=[\s\S]*\S)[^${control}${loneSurrogate}${deceptive}]+$`, "u"))
  .describe(
    "must be one line of text, not blank, without control, bidirectional or zero-width characters",
  );

/** The name of a targeting rule, which may be empty. Release 0.1 accepted control characters other than NUL. */
export const RuleName = z
  .string()
  .max(200)
  .regex(new RegExp(String.raw`^[^\x00${loneSurrogate}${deceptive}]*$`, "u"))
  .describe("must be text without NUL, bidirectional or zero-width characters or broken Unicode");
