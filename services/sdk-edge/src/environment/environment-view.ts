import { createHash } from "node:crypto";
import type { FlagEntry } from "@halyard/contracts";
import { type EnvironmentFlags, isDeleted } from "../snapshot/snapshot.ts";
import { asciiJson } from "./ascii-json.ts";
import { evaluateFlag, type FlagOutcome } from "./flag-value.ts";

/**
 * What an environment answers, worked out once for each change and never for a request: the outcome of
 * each flag, and the body of all values, ready to be sent.
 */
export type EnvironmentView = {
  /** By flag key, in the order of the keys. */
  outcomes: ReadonlyMap<string, FlagOutcome>;
  /**
   * `{"flags":{…}}`, in the order of the keys. It is ASCII, so that its characters are its bytes and
   * Node sends it together with the headers, in one piece.
   */
  body: string;
  /**
   * Names the values: the same values have the same tag on every edge, so that a client may poll now
   * here, now there. With its quotes, as it stands in the header `ETag` and as the id of events.
   */
  etag: string;
};

/** 132 bits of a SHA-256: enough that two bodies never share a tag. */
const etagLength = 22;

export function deriveView(environment: EnvironmentFlags | undefined): EnvironmentView {
  const outcomes = new Map<string, FlagOutcome>();
  let values = "";
  for (const flag of flagsInOrder(environment)) {
    const outcome = evaluateFlag(flag);
    outcomes.set(flag.key, outcome);
    values += `${values === "" ? "" : ","}${asciiJson(flag.key)}:${outcome.value}`;
  }
  const body = inOnePiece(`{"flags":{${values}}}`);
  const hash = createHash("sha256").update(body).digest("base64url");
  return { outcomes, body, etag: `"${hash.slice(0, etagLength)}"` };
}

/**
 * A text that was put together from parts is kept as its parts, and copied out of them each time that
 * it is sent. Read back from bytes it is one piece.
 */
function inOnePiece(ascii: string): string {
  return Buffer.from(ascii, "latin1").toString("latin1");
}

/** The view of an environment that has no flags. */
export const emptyView = deriveView(undefined);

/**
 * The flags that exist, by key. A key belongs to one flag at a time, but when one was deleted and made
 * anew, its new flag may arrive before the deletion of the old one. The later of the two counts; ids
 * grow with time, so that is the one with the greater id.
 */
function flagsInOrder(environment: EnvironmentFlags | undefined): FlagEntry[] {
  const byKey = new Map<string, FlagEntry>();
  for (const flag of environment?.flags.values() ?? []) {
    if (isDeleted(flag)) continue;
    const rival = byKey.get(flag.key);
    if (rival === undefined || rival.flag_id < flag.flag_id) byKey.set(flag.key, flag);
  }
  return [...byKey.values()].sort((one, other) => (one.key < other.key ? -1 : 1));
}
