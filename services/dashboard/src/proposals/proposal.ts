import type { RequestedChange } from "../api/schema.d.ts";
import type { Difference } from "../state/difference.ts";
import { labelOf } from "../state/state.ts";
import { joined } from "../state/words.ts";

/** A change that is proposed instead of made. */
export type Proposal = {
  title: string;
  changes: readonly RequestedChange[];
  /** The JSON text of `changes`, where the texts of values must stay as they were entered. */
  changesText?: string;
  /** Applies the request at this time. */
  applyAt?: string;
  differences: readonly Difference[];
  warning?: string | undefined;
  /** Called once the request is open. */
  onOpened?: () => void;
};

/** Limit of the API. */
export const maxTitle = 200;

const cut = (text: string): string =>
  text.length > maxTitle ? `${text.slice(0, maxTitle - 1)}…` : text;

/** Differences that a title names. The others are counted. */
const namedDifferences = 2;

/** Writes the title of a request, in the words of the API's summaries: "new-checkout in production: 25 % → 50 %". */
export function titleOf(subject: string, differences: readonly Difference[]): string {
  const named = differences.slice(0, namedDifferences).map(shortText);
  const more = differences.length - named.length;
  const texts = more > 0 ? [...named, `${more} more`] : named;
  return cut(texts.length === 0 ? subject : `${subject}: ${joined(texts, "and")}`);
}

function shortText({ label, before, after, parts }: Difference): string {
  if (label === labelOf("enabled")) return `turned ${after}`;
  if (label === labelOf("rollout_percentage")) return `${before} → ${after}`;
  const name = label.charAt(0).toLowerCase() + label.slice(1);
  if (parts !== undefined) return `${name} changed`;
  if (before === undefined) return `${name} added`;
  return after === undefined ? `${name} removed` : `${name} ${before} → ${after}`;
}

/** Returns the body of the request that opens a change request. */
export function bodyText(proposal: Proposal, { title, reason }: { title: string; reason: string }) {
  const { changes, changesText = JSON.stringify(changes), applyAt } = proposal;
  const members = {
    title: title.trim(),
    ...(reason.trim() !== "" && { reason: reason.trim() }),
    ...(applyAt !== undefined && { apply_at: applyAt }),
  };
  return `${JSON.stringify(members).slice(0, -1)},"changes":${changesText}}`;
}
