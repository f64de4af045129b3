import type { ProposedChange } from "../api/schema.d.ts";
import { changed, type Difference } from "../state/difference.ts";
import type { State } from "../state/flag-state.ts";
import { protectionDifferences } from "../state/protection.ts";
import { stateDifferences, stateIn, stateTexts } from "../state/state.ts";
import { listText, matchTexts } from "../state/words.ts";
import { variationDifferences } from "../variations/variation-differences.ts";

/** Values, one line for each fact. */
type Facts = readonly string[];

/** A proposed change in words. */
export type ProposedWords = {
  differences: readonly Difference[];
  /** All values before and after, and those now if something else has changed them. */
  sides?: { before: Facts; after: Facts; now?: Facts };
  /** The differences that something else has made since. The values after are those now. */
  since?: readonly Difference[];
  /** What else changes. */
  notes: readonly string[];
};

type Of<Kind extends ProposedChange["kind"]> = Extract<ProposedChange, { kind: Kind }>;

export function proposedWords(change: ProposedChange): ProposedWords {
  switch (change.kind) {
    case "state":
      return stateWords(change);
    case "flag_variations":
      return variationsWords(change);
    case "flag_deletion":
      return {
        differences: [{ label: change.flag_key, before: "in every environment" }],
        notes: ["Its rules and schedules are deleted with it."],
      };
    case "audience":
      return audienceWords(change);
    case "audience_list":
      return { differences: entriesDifferences(change), notes: [] };
    case "protection":
      return {
        differences: protectionDifferences(change.before, change.protected),
        ...(change.now !== undefined && {
          since: protectionDifferences(change.before, change.now),
        }),
        notes: [],
      };
  }
}

function stateWords(change: Of<"state">): ProposedWords {
  const before = stateIn(change.before as State);
  const after = stateIn(change.after as State);
  const now = change.now && stateIn(change.now as State);
  const { dependents, environment_name: name } = change;
  const flags = dependents === 1 ? "1 flag requires" : `${dependents} flags require`;
  return {
    differences: stateDifferences(before, after),
    sides: {
      ...{ before: stateTexts(before), after: stateTexts(after) },
      ...(now !== undefined && { now: stateTexts(now) }),
    },
    ...(now !== undefined && { since: stateDifferences(before, now) }),
    notes: dependents === 0 ? [] : [`${flags} this one in ${name}.`],
  };
}

type Variations = Of<"flag_variations">["before"];

const valued = (variations: Variations) =>
  variations.map(({ key, value, name }) => ({ key, json: JSON.stringify(value), name }));

function variationsWords({ before, variations, now }: Of<"flag_variations">): ProposedWords {
  return {
    differences: variationDifferences(valued(before), valued(variations)),
    ...(now !== undefined && { since: variationDifferences(valued(before), valued(now)) }),
    notes: ["All environments share the variations."],
  };
}

function audienceWords({ patch, before, now }: Of<"audience">): ProposedWords {
  const matchText = ({ match }: Pick<typeof before, "match">) =>
    matchTexts(match).join(". ") || "none";
  const matchDifference = (after: Pick<typeof before, "match">) =>
    changed("Alternatives", matchText(before), matchText(after));
  return {
    differences: [
      ...(patch.match === undefined ? [] : matchDifference({ match: patch.match })),
      ...(patch.list === null ? [{ label: "List", before: listText(before.list) }] : []),
    ],
    ...(now !== undefined && {
      since: [
        ...matchDifference(now),
        ...changed("List", listText(before.list), listText(now.list)),
      ],
    }),
    notes: [],
  };
}

function entriesDifferences({ added, removed }: Of<"audience_list">): Difference[] {
  return [
    ...(added > 0 ? [{ label: "Entries", after: String(added) }] : []),
    ...(removed > 0 ? [{ label: "Entries", before: String(removed) }] : []),
  ];
}

/** Returns the key of the audience that a change concerns. */
export const audienceOf = (change: ProposedChange): string | undefined =>
  "audience" in change ? change.audience : undefined;

/** Names the subject of a change: "new-checkout in production". */
export function subjectText(change: ProposedChange): string {
  switch (change.kind) {
    case "state":
      return `${change.flag_key} in ${change.environment_name}`;
    case "flag_variations":
      return `Values of ${change.flag_key}`;
    case "flag_deletion":
      return `Deletion of ${change.flag_key}`;
    case "audience":
      return `Audience ${change.audience}`;
    case "audience_list":
      return `List of the audience ${change.audience}`;
    case "protection":
      return `Protection of ${change.environment_name}`;
  }
}
