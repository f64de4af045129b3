import { fieldMessageOf } from "../api/problem.ts";
import type { AttributeCondition, Audience, AudienceHistoryEntry } from "../api/schema.d.ts";
import { changed, type Difference } from "../state/difference.ts";
import { capitalized, listText, matchTexts } from "../state/words.ts";
import {
  comparisonOf,
  type DraftComparison,
  type DraftCondition,
  newCondition,
  nextUid,
} from "../targeting/draft.ts";
import type { Operators } from "../targeting/editor-context.ts";
import { conditionProblems, fieldKey, type Problems } from "../targeting/problems.ts";

/** Conditions that must all hold, with an identity that stays the same when alternatives are added or removed. */
export type Alternative = { readonly uid: string; readonly conditions: readonly DraftCondition[] };

/** The settings of an audience that are edited in a form. Its list is changed separately. */
export type AudienceDraft = {
  readonly name: string;
  readonly description: string;
  readonly alternatives: readonly Alternative[];
};

export type AudiencePart = keyof AudienceDraft;

export const partLabels: Readonly<Record<AudiencePart, string>> = {
  name: "Name",
  description: "Description",
  alternatives: "Alternatives",
};
const parts = Object.keys(partLabels) as AudiencePart[];

/** Limit of the API. */
export const maxAlternatives = 20;

type Settings = Pick<Audience, "name" | "description" | "match">;

/** Makes a draft of an audience. The identities are the positions, so a repeated read changes none. */
const draftOfAudience = ({ name, description, match }: Settings): AudienceDraft => ({
  name,
  description,
  alternatives: match.map((conditions, at) => ({
    uid: `alternative-${at}`,
    conditions: conditions.map((condition, index) => ({ ...condition, uid: `condition-${index}` })),
  })),
});

export const newAlternative = (): Alternative => ({
  uid: nextUid(),
  conditions: [newCondition()],
});

const isComparison = (condition: DraftCondition): condition is DraftComparison =>
  "attribute" in condition;

/** Returns the alternatives as the API takes them. */
export const matchOf = ({ alternatives }: AudienceDraft): AttributeCondition[][] =>
  alternatives.map(({ conditions }) => conditions.filter(isComparison).map(comparisonOf));

const textOf = (draft: AudienceDraft, part: AudiencePart): string =>
  part === "alternatives" ? JSON.stringify(matchOf(draft)) : draft[part];

/** Returns the parts that differ between two drafts. */
export const differingParts = (one: AudienceDraft, other: AudienceDraft): AudiencePart[] =>
  parts.filter((part) => textOf(one, part) !== textOf(other, part));

/** Returns the settings that differ between two drafts, as the API takes them. */
export function changedSettings(base: AudienceDraft, draft: AudienceDraft): Partial<Settings> {
  const changedParts = differingParts(base, draft);
  return {
    ...(changedParts.includes("name") && { name: draft.name.trim() }),
    ...(changedParts.includes("description") && { description: draft.description }),
    ...(changedParts.includes("alternatives") && { match: matchOf(draft) }),
  };
}

/** An edit that began from `base`, the stored settings at `version`. */
export type StartedEdit = {
  readonly draft: AudienceDraft;
  readonly base: AudienceDraft;
  readonly version: number;
  /** The parts that another person changed too, to another value. The person chooses before the draft is saved. */
  readonly conflicts: readonly AudiencePart[];
};

export function startEdit(stored: Audience): StartedEdit {
  const base = draftOfAudience(stored);
  return { draft: base, base, version: stored.version, conflicts: [] };
}

/** Bases an edit on a newer version. A part that only the other person changed gets that person's value. */
export function rebased(edit: StartedEdit, stored: Audience): StartedEdit {
  if (stored.version <= edit.version) return edit;
  const theirs = draftOfAudience(stored);
  const mine = differingParts(edit.base, edit.draft);
  const changedByThem = differingParts(edit.base, theirs);
  const taken = changedByThem.filter((part) => !mine.includes(part));
  const draft = { ...edit.draft, ...Object.fromEntries(taken.map((part) => [part, theirs[part]])) };
  const both = changedByThem.filter((part) => mine.includes(part));
  const open = [...new Set([...edit.conflicts, ...both])];
  const differing = differingParts(draft, theirs);
  return {
    draft,
    base: theirs,
    version: stored.version,
    conflicts: open.filter((part) => differing.includes(part)),
  };
}

/** Ends a conflict with the value of the draft, or with that of the stored audience. */
export const decided = (
  edit: StartedEdit,
  part: AudiencePart,
  choice: "mine" | "theirs",
): StartedEdit => ({
  ...edit,
  draft: choice === "mine" ? edit.draft : { ...edit.draft, [part]: edit.base[part] },
  conflicts: edit.conflicts.filter((other) => other !== part),
});

/** Checks a draft as far as the browser can. The API checks it completely. */
export function audienceProblems(
  { name, alternatives }: AudienceDraft,
  rules: { operators: Operators; locale: string },
): Problems {
  const found = new Map<string, string>();
  if (name.trim() === "") found.set(fieldKey("", "name"), "Enter a name.");
  for (const { uid, conditions } of alternatives) {
    if (conditions.length === 0)
      found.set(fieldKey(uid, "conditions"), "Add a condition, or remove the alternative.");
    for (const [key, text] of conditionProblems(uid, conditions, rules)) found.set(key, text);
  }
  return found;
}

/** Returns the message of the API about one condition of the draft that was sent, by its field. */
export function matchProblemOf(error: unknown, { alternatives }: AudienceDraft): Problems {
  const message = fieldMessageOf(error);
  const [name, at, index, field = "value"] = message?.path ?? [];
  const alternative = alternatives[Number(at)];
  const condition = alternative?.conditions[Number(index)];
  if (message === undefined || name !== "match" || alternative === undefined) return new Map();
  const key =
    condition === undefined
      ? fieldKey(alternative.uid, "conditions")
      : fieldKey(alternative.uid, field, condition.uid);
  return new Map([[key, capitalized(message.text)]]);
}

type Versioned = Pick<AudienceHistoryEntry, "name" | "description" | "match" | "list">;

/** Returns the differences between two versions of an audience, in words. */
export function audienceDifferences(before: Versioned, after: Versioned): Difference[] {
  const textsOf = (match: NonNullable<Versioned["match"]>) =>
    matchTexts(match).join(". ") || "none";
  return [
    ...changed("Name", before.name, after.name),
    ...changed("Description", before.description || "none", after.description || "none"),
    // The conditions of a version may be those of an older one that is not loaded.
    ...(before.match === undefined || after.match === undefined
      ? []
      : changed("Alternatives", textsOf(before.match), textsOf(after.match))),
    ...changed("List", listText(before.list), listText(after.list)),
  ];
}

type Use = { flag_id: string; environment_id: string };

/** Says what a change of an audience reaches: "3 flags in 2 environments". */
export function reachText(uses: readonly Use[]): string {
  const flags = new Set(uses.map(({ flag_id }) => flag_id)).size;
  const environments = new Set(uses.map(({ environment_id }) => environment_id)).size;
  return `${flags === 1 ? "1 flag" : `${flags} flags`} in ${environments === 1 ? "1 environment" : `${environments} environments`}`;
}
