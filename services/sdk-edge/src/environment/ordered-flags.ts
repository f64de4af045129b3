import type { FlagEntry } from "@halyard/contracts";
import { type PreparedFlag, prepareFlag } from "./prepared-flag.ts";
import {
  compareEntries,
  type FlagDifference,
  firstIndex,
  Segment,
  SegmentDraft,
} from "./segment.ts";

/**
 * The flags of an environment in the order of their keys, in segments of bounded length. A change of one
 * flag therefore costs about the same whether the environment has a thousand flags or a hundred thousand.
 * There is always at least one segment, and only a single one may be empty.
 */
export type OrderedFlags = readonly Segment[];

/**
 * A segment's flags share their conditions when they are evaluated, and where they are few, those of a
 * whole environment do. A change copies the lists of one segment, a few microseconds at this length.
 */
export const longestSegment = 1_024;

/** A changed segment that is shorter is joined with the one before it, so that deletions leave no crumbs. */
const shortestSegment = longestSegment / 4;

/** Prepares all flags. Those that `previous` holds are used again. */
export function orderFlags(
  entries: Iterable<FlagEntry>,
  previous: OrderedFlags = [],
): OrderedFlags {
  const known = new Map<FlagEntry, PreparedFlag>();
  for (const { all } of previous) for (const one of all) known.set(one.entry, one);
  const flags = Array.from(entries, (entry) => known.get(entry) ?? prepareFlag(entry));
  return segmentsOf(flags.sort((one, other) => compareEntries(one.entry, other.entry)));
}

/** Applies changes in their order. Segments without a change are the same objects as before. */
export function changeFlags(
  flags: OrderedFlags,
  differences: Iterable<FlagDifference>,
): OrderedFlags {
  const drafts = new Map<number, SegmentDraft>();
  function draftFor({ key }: FlagEntry): SegmentDraft {
    const index = segmentIndexOf(flags, key);
    let draft = drafts.get(index);
    if (draft === undefined) {
      draft = new SegmentDraft(flags[index] as Segment);
      drafts.set(index, draft);
    }
    return draft;
  }

  for (const { before, after } of differences) {
    if (before !== undefined && before.key !== after?.key) draftFor(before).remove(before);
    if (after !== undefined) draftFor(after).put(after);
  }
  const changed: Segment[] = [];
  flags.forEach((segment, index) => {
    const draft = drafts.get(index);
    if (draft === undefined) changed.push(segment);
    else append(changed, draft);
  });
  return changed.length === 0 ? segmentsOf([]) : changed;
}

/** The flag with a key. */
export function findFlag(flags: OrderedFlags, key: string): PreparedFlag | undefined {
  const candidates = flags[segmentIndexOf(flags, key)]?.flags ?? [];
  const found = candidates[firstIndex(candidates, ({ entry }) => entry.key >= key)];
  return found?.entry.key === key ? found : undefined;
}

function append(segments: Segment[], draft: SegmentDraft): void {
  const { length } = draft.all;
  if (length === 0) return;
  const last = segments.at(-1);
  if (last !== undefined && length < shortestSegment && last.all.length + length <= longestSegment)
    segments.splice(-1, 1, new Segment([...last.all, ...draft.all]));
  else if (length <= longestSegment) segments.push(draft.finish());
  else segments.push(...segmentsOf(draft.all));
}

/** Cuts ordered flags into segments of about equal length. */
function segmentsOf(ordered: readonly PreparedFlag[]): Segment[] {
  const segments: Segment[] = [];
  const length = Math.ceil(ordered.length / Math.ceil(ordered.length / longestSegment));
  for (let begin = 0; begin < ordered.length; ) {
    let end = begin + length;
    // Flags that claim the same key stay together.
    while (ordered[end] !== undefined && ordered[end]?.entry.key === ordered[end - 1]?.entry.key)
      end += 1;
    segments.push(new Segment(ordered.slice(begin, end)));
    begin = end;
  }
  return segments.length === 0 ? [new Segment([])] : segments;
}

/** The index of the segment that contains a key, or would contain it. */
function segmentIndexOf(flags: OrderedFlags, key: string): number {
  const next = firstIndex(flags, ({ all }) => (all[0]?.entry.key ?? key) > key);
  return Math.max(0, next - 1);
}
