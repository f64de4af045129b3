import { z } from "zod";
import { AttributeCondition, AttributeConditionInput, AttributeName } from "./rules.ts";
import { compileOrder } from "./state.ts";
import { loneSurrogate } from "./text-pattern.ts";

/** Audiences: named sets of users of a project. */

export const maxAlternatives = 20;
export const maxConditionsOfAlternative = 50;

/** Size of `match` as JSON in UTF-8. */
export const maxMatchBytes = 480 * 1024;

/** Alternatives of conditions, in responses and messages. All conditions of one alternative must hold. */
export const Match = z.array(z.array(AttributeCondition));
export type Match = z.infer<typeof Match>;

const reorder = compileOrder(Match);

/** Returns alternatives with the members of conditions in the order of the schema, which `jsonb` does not preserve. */
export const matchOf = (match: Match): Match => reorder(match) as Match;

export const MatchInput = z
  .array(z.array(AttributeConditionInput).min(1).max(maxConditionsOfAlternative))
  .max(maxAlternatives)
  .describe(
    "Alternatives of conditions. A user is in the audience if all conditions of one alternative hold. At most 480 KiB as JSON",
  );

/** The kind of a change of an audience: `list` for one that changes only the list. */
export const AudienceChange = z.enum(["created", "updated", "deleted", "list"]);
export type AudienceChange = z.infer<typeof AudienceChange>;

export const maxListEntries = 1_000_000;
export const maxProjectListEntries = 10_000_000;
export const maxAudiencesOfProject = 1_000;
export const maxUploadBytes = 64 * 1024 * 1024;
/** Time within which the body of an upload must arrive. */
export const uploadTimeoutMs = 10 * 60 * 1_000;

/** Maximum size of a chunk of fingerprints in bytes. As base64 it fits a message of NATS. */
export const maxChunkBytes = 512 * 1024;

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/**
 * The list of an audience, as evaluators get it. They have fingerprints in place of the entries: SipHash-2-4 of the UTF-8
 * bytes of an entry, 8 bytes, big-endian. The number of chunks is a power of two, 2^b, or 0 for an empty list. A chunk
 * has the fingerprints whose leading b bits are its index, in ascending order.
 */
export const AudienceList = z.object({
  attribute: AttributeName,
  count: z.int().min(0),
  /** Key of the fingerprints of the project. */
  key: z.string().regex(/^[0-9a-f]{32}$/),
  /** SHA-256 of the bytes of each chunk. */
  chunks: z.array(Sha256).max(1_024),
});
export type AudienceList = z.infer<typeof AudienceList>;

export const maxEntryLength = 512;

/** An entry of a list. PostgreSQL cannot store NUL, and UTF-8 cannot encode a lone surrogate. */
export const ListEntry = z
  .string()
  .min(1)
  .max(maxEntryLength)
  .regex(new RegExp(`^[^\\x00${loneSurrogate}]*$`, "u"))
  .describe(`must be 1 to ${maxEntryLength} characters without NUL or broken Unicode`);

/** Maximum number of entries that one request adds and removes. */
export const maxChangedEntries = 10_000;
