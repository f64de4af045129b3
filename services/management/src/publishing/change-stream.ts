import type { ServerResponse } from "node:http";
import { EventStream, stringify } from "@halyard/http";
import { auditEntryResource } from "../audit/audit-log.ts";
import type { Feed, SequencedEntry } from "./feed-store.ts";

/** One open stream of changes. */
export class ChangeStream extends EventStream {
  readonly feed: Feed;
  /** The id of the API key or of the session, or "operator". */
  readonly caller: string;
  readonly isOfSession: boolean;
  /** Returns whether the caller may still view the project, and whether the session has not ended. */
  readonly mayContinue: () => Promise<boolean>;
  expiresAtMs: number | undefined;
  /** Sequence after which the stream continues. Undefined until the first read. */
  position: number | undefined;
  /** True when the stream has sent all changes that were missed before it was opened. */
  isCaughtUp = false;
  /** Monotonic time of the last heartbeat. */
  heartbeatMs: number;

  constructor(response: ServerResponse, opening: Opening, nowMs: number) {
    super(response);
    const { resume } = opening;
    this.feed = opening.feed;
    this.caller = opening.caller;
    this.isOfSession = opening.isOfSession;
    this.mayContinue = opening.mayContinue;
    this.expiresAtMs = opening.expiresAtMs;
    this.position = resume !== undefined && "position" in resume ? resume.position : undefined;
    this.heartbeatMs = nowMs;
  }
}

/** The request of a client for a stream. */
export type Opening = Pick<
  ChangeStream,
  "feed" | "caller" | "isOfSession" | "mayContinue" | "expiresAtMs"
> & {
  /** The position of the last entry that the client has, or the reason for a reset. Undefined for a new client. */
  resume: { position: number } | { reset: ResetReason } | undefined;
};

export const operatorCaller = "operator";

/**
 * Formats an entry for a feed. The entry of another environment, or of none, contains what a key with `environment_only`
 * must not see, so such a key learns only which flag to read again. JSON contains no line breaks, so the data is one line.
 */
export function eventOf(entry: SequencedEntry, { environmentId }: Feed): string {
  const isListed = environmentId === undefined || environmentId === entry.environmentId;
  return isListed
    ? event("change", entry, auditEntryResource(entry))
    : event("flag_changed", entry, { flag_id: entry.flagId, flag_key: entry.flagKey });
}

const event = (name: string, { id }: SequencedEntry, data: object): string =>
  `event: ${name}\nid: ${id}\ndata: ${stringify(data)}\n\n`;

/** Why a stream cannot send all changes that were missed. */
type ResetReason = "unknown_id" | "too_many_changes" | "database_restored";

export function resetEvent(reason: ResetReason): string {
  return `event: reset\ndata: {"reason":"${reason}"}\n\n`;
}
