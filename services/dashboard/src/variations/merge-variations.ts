import { changed, type Difference } from "../state/difference.ts";
import { interleaved } from "../state/interleaved.ts";
import { compactJson, jsonProblem } from "./json-text.ts";
import {
  draftsOf,
  type StoredVariation,
  type TypedValueType,
  type VariationDraft,
} from "./variation-drafts.ts";

/** The stored variations of a flag, at a version of the flag. */
export type Variations = { readonly version: number; readonly stored: readonly StoredVariation[] };

export const isSameVariations = (
  one: readonly StoredVariation[],
  other: readonly StoredVariation[],
): boolean => JSON.stringify(one) === JSON.stringify(other);

/** A variation that two people changed differently. `mine` and `theirs` are undefined if that person removed it. */
export type VariationConflict = {
  readonly uid: string;
  readonly key: string;
  readonly mine: VariationDraft | undefined;
  readonly theirs: VariationDraft | undefined;
};

/** Variations that are edited. */
export type EditedVariations = {
  readonly drafts: readonly VariationDraft[];
  /** The stored variations that the drafts contain or change. */
  readonly base: Variations;
  /** The first base, if the changes of other people were merged since. */
  readonly firstBase: Variations | undefined;
  /** The conflicts without a choice of the person. The drafts have the person's own variations. */
  readonly conflicts: readonly VariationConflict[];
};

export const startOf = (type: TypedValueType, base: Variations): EditedVariations => ({
  drafts: draftsOf(type, base.stored),
  base,
  firstBase: undefined,
  conflicts: [],
});

/**
 * Merges the stored variations into edited ones. Variations are recognized by their keys, so a new key is a removal and
 * an addition. The name and the value of a variation are merged separately. A variation that one person removed and the
 * other person changed is a conflict, so that no edit is lost silently.
 */
export function mergedWith(
  type: TypedValueType,
  edited: EditedVariations,
  current: Variations,
): EditedVariations {
  if (isSameVariations(edited.base.stored, current.stored)) return edited;
  const base = draftsOf(type, edited.base.stored);
  const mine = edited.drafts;
  const theirs = draftsOf(type, current.stored, `version-${current.version}`).map((draft) => ({
    ...draft,
    uid: withKey(mine, draft.key)?.uid ?? draft.uid,
  }));
  const merged = new Map<string, VariationDraft>();
  const conflicts: VariationConflict[] = [];
  const { overlay, isSame } = comparisonsOf(type);
  for (const uid of new Set([...theirs, ...mine].map((draft) => draft.uid))) {
    const [own, other] = [withUid(mine, uid), withUid(theirs, uid)];
    const { key } = own ?? (other as VariationDraft);
    const former =
      withKey(mine, key)?.uid === uid || own === undefined ? withKey(base, key) : undefined;
    const versions = { mine: overlay(former, own, other), theirs: overlay(former, other, own) };
    if (versions.mine !== undefined) merged.set(uid, versions.mine);
    if (!isSame(versions.mine, versions.theirs)) conflicts.push({ uid, key, ...versions });
  }
  const order = interleaved(uidsOf(theirs), uidsOf(mine));
  const open = edited.conflicts.filter(({ key }) => conflicts.every((each) => each.key !== key));
  return {
    drafts: order.flatMap((uid) => merged.get(uid) ?? []),
    base: current,
    firstBase: edited.firstBase ?? edited.base,
    conflicts: [...open, ...conflicts],
  };
}

/** Returns the conflicts in which the drafts still differ from the other person's variations. */
export const openConflicts = (
  type: TypedValueType,
  { drafts, conflicts }: Pick<EditedVariations, "drafts" | "conflicts">,
): readonly VariationConflict[] =>
  conflicts.filter(({ uid, theirs }) => !comparisonsOf(type).isSame(withUid(drafts, uid), theirs));

/** Ends a conflict with the variation of the drafts, or with that of the other person. */
export function decided(
  edited: EditedVariations,
  { uid, theirs }: VariationConflict,
  choice: "mine" | "theirs",
): EditedVariations {
  const conflicts = edited.conflicts.filter((other) => other.uid !== uid);
  if (choice === "mine") return { ...edited, conflicts };
  const isPresent = withUid(edited.drafts, uid) !== undefined;
  const replaced = edited.drafts.flatMap((draft) => (draft.uid === uid ? (theirs ?? []) : draft));
  const drafts = isPresent ? replaced : [...replaced, ...(theirs === undefined ? [] : [theirs])];
  return { ...edited, conflicts, drafts };
}

type Version = VariationDraft | undefined;

/** Comparisons of variations of a type. White space in an object makes no difference. */
function comparisonsOf(type: TypedValueType) {
  const textOf = ({ text }: VariationDraft) =>
    type === "object" && jsonProblem(text) === undefined ? compactJson(text) : text;
  const hasSameName = (one: VariationDraft, other: VariationDraft) =>
    one.name.trim() === other.name.trim();
  const hasSameValue = (one: VariationDraft, other: VariationDraft) =>
    textOf(one) === textOf(other);
  const isSame = (one: Version, other: Version): boolean =>
    one === undefined || other === undefined
      ? one === other
      : hasSameName(one, other) && hasSameValue(one, other);
  /** Returns the edits that `top` makes to `base`, over those of `bottom`. */
  const overlay = (base: Version, top: Version, bottom: Version): Version => {
    if (top === undefined || bottom === undefined) return isSame(base, top) ? bottom : top;
    if (base === undefined) return top;
    const { text, stored } = hasSameValue(base, top) ? bottom : top;
    const { name } = hasSameName(base, top) ? bottom : top;
    return { uid: top.uid, key: top.key, name, text, ...(stored && { stored }) };
  };
  return { isSame, overlay };
}

const withKey = (drafts: readonly VariationDraft[], key: string): Version =>
  drafts.find((draft) => draft.key === key);

const withUid = (drafts: readonly VariationDraft[], uid: string): Version =>
  drafts.find((draft) => draft.uid === uid);

const uidsOf = (drafts: readonly VariationDraft[]): readonly string[] =>
  drafts.map(({ uid }) => uid);

/** Returns the differences between two versions of the variations, by their keys. */
export function variationDifferences(
  before: readonly VariationDraft[],
  after: readonly VariationDraft[],
): Difference[] {
  const keys = [...new Set([...before, ...after].map(({ key }) => key))];
  return keys.flatMap((key) => {
    const [one, other] = [withKey(before, key), withKey(after, key)];
    if (one === undefined || other === undefined)
      return [{ label: key, before: one && shown(one.text), after: other && shown(other.text) }];
    return [
      ...changed(key, shown(one.text), shown(other.text)),
      ...changed(`Name of ${key}`, shown(one.name), shown(other.name)),
    ];
  });
}

const maxShown = 200;

function shown(text: string): string {
  if (text === "") return "(empty)";
  return text.length > maxShown ? `${text.slice(0, maxShown)}…` : text;
}
