import { createProblem, type Problem } from "@halyard/http";
import {
  type ConfigurationTag,
  mayBeNewer,
  parseConfigurationTag,
} from "../../answers/configuration-tags.ts";
import { format } from "../../answers/rulesets.ts";
import { awaitState } from "../await-state.ts";
import type { EdgeParts } from "../edge-parts.ts";
import type { SdkExchange } from "../hot-path.ts";

/**
 * The rules that a client has. It sends their tag, and must never receive older ones, because it replaces its rules
 * with every response.
 */

/** Returns the tags in `If-None-Match` or `Last-Event-ID`. Tags of another form come from no edge and are ignored. */
export function readHeldTags(header: string | undefined): readonly ConfigurationTag[] {
  const elements = header?.split(",") ?? [];
  return elements
    .map((element) => parseConfigurationTag(element.trim().replace(quotes, "$1")))
    .filter((tag) => tag !== undefined);
}

/** A tag of a rule set with its quotes. A proxy that compresses the response adds the `W/`. */
const quotes = new RegExp(`^(?:W/)?"${format}\\.(.*)"$`);

/**
 * Calls `respond` when this edge has the rules of a tag or later ones. A change that the client received from another
 * edge may still be on its way, so the request waits for it, at most a second.
 */
export function unlessOlder(
  parts: EdgeParts,
  exchange: SdkExchange,
  { held, respond }: { held: readonly ConfigurationTag[]; respond: () => void },
): void {
  const { configurationTags, holder, now } = parts;
  const { environmentId } = exchange.key;
  const isKnown = (tag: ConfigurationTag) => {
    const present = configurationTags.of(environmentId);
    // The comparison with this edge's clock is omitted, because the clock may be wrong.
    const nowMs = Number.POSITIVE_INFINITY;
    return !mayBeNewer(tag, { present, nowMs }) || configurationTags.includes(environmentId, tag);
  };
  awaitState(parts, exchange, {
    isKnown: () => held.every(isKnown),
    respond(isKnownNow) {
      const problem = isKnownNow
        ? undefined
        : problemOfUnknown(held, {
            present: configurationTags.of(environmentId),
            staleMs: holder.staleMs(),
            nowMs: now(),
          });
      if (problem === undefined) respond();
      else exchange.reject(problem);
    },
  });
}

/** Maximum time since an edge was last known to be current. It confirms that several times a second. */
const maxStaleMs = 2_000;

/** Time after which an edge that lost its connection to NATS without an error has noticed it, with room to spare. */
const detectionMs = 10_000;

/**
 * Returns the problem of a client whose tag is still unknown after the wait; undefined if this edge may send its rules.
 *
 * An edge that is current has every change that is older than `detectionMs`, and every change that precedes its newest
 * one. If it does not know such a tag, it has skipped that state, or the tag is from before the database was restored
 * from a backup, or it comes from no edge.
 */
function problemOfUnknown(
  held: readonly ConfigurationTag[],
  edge: { present: ConfigurationTag; staleMs: number | undefined; nowMs: number },
): Problem | undefined {
  const { present, staleMs, nowMs } = edge;
  if (staleMs === undefined || staleMs > maxStaleMs) return mayBeOlder;
  const mayBeUnderWay = held.some(
    ({ newestMs }) => newestMs >= present.newestMs && Math.abs(nowMs - newestMs) < detectionMs,
  );
  return mayBeUnderWay ? mayBeOlder : undefined;
}

const mayBeOlder = createProblem(
  "SERVER_002",
  "This edge may lack a change that the client already has; retry after 1 s.",
);
