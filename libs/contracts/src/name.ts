import { z } from "zod";
import { control, deceptive, loneSurrogate, upToPlane3 } from "./text-pattern.ts";

/** A display name: one line, not blank. Lengths are counted in Unicode code points. */
export const Name = z
  .string()
  .min(1)
  .max(200)
  .regex(
    new RegExp(
      String.raw`^${upToPlane3}(?=[\s\S]*\S)[^${control}${loneSurrogate}${deceptive}]+$`,
      "u",
    ),
  )
  .describe(
    "must be one line of text, not blank, without control, bidirectional or zero-width characters",
  );

/** The name of a targeting rule, which may be empty. Release 0.1 accepted control characters other than NUL. */
export const RuleName = z
  .string()
  .max(200)
  .regex(new RegExp(String.raw`^${upToPlane3}[^\x00${loneSurrogate}${deceptive}]*$`, "u"))
  .describe("must be text without NUL, bidirectional or zero-width characters or broken Unicode");

/** Key of a flag or of an audience. */
export const FlagKey = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)
  .describe(
    "must be 1 to 128 letters, digits, dots, underscores or hyphens, a letter or digit first",
  );
