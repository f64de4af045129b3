import type { UpdateFlags } from "../api/schema.d.ts";
import type { ListedFlag } from "../flags/flag-search.ts";
import { count } from "../ui/numbers.ts";

/** A change of the settings of several flags. */
export type BulkChange =
  | { readonly kind: "archive" }
  | { readonly kind: "restore" }
  | { readonly kind: "owner"; readonly owner: string }
  | { readonly kind: "add_tags"; readonly tags: readonly string[] }
  | { readonly kind: "remove_tags"; readonly tags: readonly string[] };

export type BulkKind = BulkChange["kind"];

/** Returns the change as the API takes it, or undefined while it would change nothing. */
export function requestOf(change: BulkChange): UpdateFlags["set"] | undefined {
  if (change.kind === "archive" || change.kind === "restore")
    return { archived: change.kind === "archive" };
  if (change.kind === "owner") return { owner: change.owner.trim() || null };
  return change.tags.length === 0 ? undefined : { [change.kind]: [...change.tags] };
}

/** Returns the flags that a change makes different. The API leaves the others as they are. */
export const changedFlags = (
  flags: readonly ListedFlag[],
  change: BulkChange,
): readonly ListedFlag[] => flags.filter((flag) => differsAfter(flag, change));

function differsAfter({ tags, owner, archived_at }: ListedFlag, change: BulkChange): boolean {
  switch (change.kind) {
    case "archive":
      return archived_at === null;
    case "restore":
      return archived_at !== null;
    case "owner":
      return owner !== (change.owner.trim() || null);
    case "add_tags":
      return change.tags.some((tag) => !tags.includes(tag));
    case "remove_tags":
      return change.tags.some((tag) => tags.includes(tag));
  }
}

export const flagsText = (flags: number): string =>
  flags === 1 ? "1 flag" : `${count(flags)} flags`;

/** Says what a change does: "Archives 12 flags", "Adds the tag beta to 3 flags". */
export function bulkText(change: BulkChange, flags: number): string {
  const many = flagsText(flags);
  switch (change.kind) {
    case "archive":
      return `Archives ${many}`;
    case "restore":
      return `Restores ${many}`;
    case "owner":
      return change.owner.trim() === ""
        ? `Removes the owner of ${many}`
        : `Sets the owner of ${many} to ${change.owner.trim()}`;
    case "add_tags":
      return `Adds ${tagsText(change.tags)} to ${many}`;
    case "remove_tags":
      return `Removes ${tagsText(change.tags)} from ${many}`;
  }
}

const tagsText = (tags: readonly string[]): string =>
  `the ${tags.length === 1 ? "tag" : "tags"} ${tags.join(", ")}`;

/** Flags that one request changes at most. */
const batchSize = 200;

export const batchesOf = <Item>(items: readonly Item[]): Item[][] =>
  Array.from({ length: Math.ceil(items.length / batchSize) }, (_, index) =>
    items.slice(index * batchSize, (index + 1) * batchSize),
  );
