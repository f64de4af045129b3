import { type Audience, type AudienceList, findUnknown } from "@halyard/evaluation";
import { isRecord } from "./is-record.ts";

/** An audience as it was received. */
export type AudienceRules = {
  readonly audience: Audience;
  /** The part that this version does not know, or that is malformed. The members of `audience` are unchecked then. */
  readonly unknown: string | undefined;
};

/**
 * Reads the audiences of a rule set by key. Undefined if they are no object. A list must have the form that the evaluation
 * expects; its bytes are checked when they arrive. An audience in another form is unknown, because a later release can
 * have changed the form. Only the flags that use it are withheld.
 */
export function readAudiences(value: unknown): ReadonlyMap<string, AudienceRules> | undefined {
  const audiences = new Map<string, AudienceRules>();
  if (value === undefined) return audiences;
  if (!isRecord(value)) return undefined;
  for (const [key, received] of Object.entries(value)) {
    const unknown = isRecord(received) ? findUnknownIn(received) : "another form";
    audiences.set(key, { audience: received as Audience, unknown });
  }
  return audiences;
}

/** Returns the SHA-256 of each chunk that audiences need. The list of an unknown audience is not loaded. */
export function chunkNames(audiences: Iterable<AudienceRules>): Set<string> {
  const names = new Set<string>();
  for (const { audience, unknown } of audiences)
    if (unknown === undefined) for (const sha256 of audience.list?.chunks ?? []) names.add(sha256);
  return names;
}

function findUnknownIn({ needs, match, list }: Record<string, unknown>): string | undefined {
  const unknown = findUnknown({
    needs: Array.isArray(needs) ? needs.map(String) : [],
    targeting_rules: Array.isArray(match) ? match.map((conditions) => ({ conditions })) : [],
  });
  if (unknown !== undefined) return unknown;
  if (!Array.isArray(match) || !match.every(Array.isArray)) return "another form of match";
  return list === undefined || isList(list) ? undefined : "another form of list";
}

/** The bits of a fingerprint select its chunk, so the number of chunks is a power of two, or 0. */
function isList(value: unknown): value is AudienceList {
  if (!isRecord(value)) return false;
  const { attribute, key, chunks } = value;
  return (
    typeof attribute === "string" &&
    typeof key === "string" &&
    /^[0-9a-f]{32}$/.test(key) &&
    Array.isArray(chunks) &&
    (chunks.length & (chunks.length - 1)) === 0 &&
    chunks.every((sha256) => typeof sha256 === "string" && sha256Shape.test(sha256))
  );
}

/** A SHA-256 in hexadecimal digits. It becomes a part of paths and addresses. */
const sha256Shape = /^[0-9a-f]{64}$/;
