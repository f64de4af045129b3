import { counterparts } from "../state/difference.ts";
import type { State } from "../state/flag-state.ts";
import { interleaved } from "../state/interleaved.ts";
import { type MemberName, memberNames } from "../state/state.ts";
import { type Draft, type DraftRule, draftOf, nextUid, ruleOf } from "./draft.ts";

type Member = Exclude<MemberName, "targeting_rules">;
const members = memberNames.filter((name) => name !== "targeting_rules");

/** A part of a state that two people can change at the same time: a member, a rule, or the order of the rules. */
export type Part = Member | "order" | `rule ${string}`;

/** The draft starts from `base`. Meanwhile, another person saved `saved`. */
type Versions = { readonly base: Draft; readonly mine: Draft; readonly saved: State };

type Merge = {
  /** Both edits. A part in `conflicts` has the value of `mine`. */
  readonly draft: Draft;
  /** The saved state. Its rules have the identities that they have in `draft`. */
  readonly base: Draft;
  /** The parts that both people changed, to different values. */
  readonly conflicts: readonly Part[];
};

/**
 * Merges two edits of the same state. A part that one person changed gets that person's value. A rule that one person
 * removed and the other person changed is a conflict, so that no edit is lost silently.
 */
export function mergeDrafts({ base, mine, saved }: Versions): Merge {
  const theirs = identified({ base, mine, saved });
  const changed = partsOf([base, mine, theirs]).filter((part) => differs(part, base, theirs));
  const isMine = (part: Part) => differs(part, base, mine);
  return {
    draft: changed
      .filter((part) => !isMine(part))
      .reduce((draft, part) => withTheirs(draft, theirs, part), mine),
    base: theirs,
    conflicts: changed.filter((part) => isMine(part) && differs(part, mine, theirs)),
  };
}

/** Returns the draft with one part of another version. An added rule follows the rule that it follows there. */
export function withTheirs(draft: Draft, theirs: Draft, part: Part): Draft {
  const uid = uidIn(part);
  if (part === "order") return inOrder(draft, interleaved(uidsOf(theirs), uidsOf(draft)));
  if (uid === undefined) {
    const invalidPercentage = part === "rollout_percentage" ? undefined : draft.invalidPercentage;
    return { ...draft, invalidPercentage, [part]: theirs[part as Member] };
  }
  const rule = ruleIn(theirs, uid);
  if (rule === undefined)
    return { ...draft, rules: draft.rules.filter((other) => other.uid !== uid) };
  if (ruleIn(draft, uid) !== undefined)
    return { ...draft, rules: draft.rules.map((other) => (other.uid === uid ? rule : other)) };
  const longer = { ...draft, rules: [...draft.rules, rule] };
  return inOrder(longer, interleaved(uidsOf(draft), uidsOf(theirs)));
}

/** Returns whether a part differs between two versions. Added and removed rules do not change the order. */
export function differs(part: Part, one: Draft, other: Draft): boolean {
  return textOf(part, one, other) !== textOf(part, other, one);
}

function textOf(part: Part, version: Draft, other: Draft): string {
  const uid = uidIn(part);
  if (uid !== undefined) return ruleText(ruleIn(version, uid));
  if (part === "order")
    return uidsOf(version)
      .filter((rule) => ruleIn(other, rule) !== undefined)
      .join();
  const invalid = part === "rollout_percentage" ? version.invalidPercentage : undefined;
  return JSON.stringify([version[part as Member], invalid]);
}

const ruleText = (rule: DraftRule | undefined): string =>
  rule === undefined ? "" : JSON.stringify([ruleOf(rule), rule.invalidPercentage, rule.serve]);

/**
 * Gives the rules of the saved state the identities of the same rules in the other versions. A rule that both people
 * added with the same id or the same content is one rule.
 */
function identified({ base, mine, saved }: Versions): Draft {
  const theirs = draftOf(saved);
  const former = counterparts(base.rules.map(ruleOf), saved.targeting_rules);
  const known = new Set(uidsOf(base));
  let added = mine.rules.filter(({ uid }) => !known.has(uid));
  const uidOfAdded = (rule: DraftRule): string => {
    const same = added.find((other) => isSameAddition(other, rule));
    added = added.filter((other) => other !== same);
    return same?.uid ?? nextUid();
  };
  const rules = theirs.rules.map((rule, at) => ({
    ...rule,
    uid: base.rules[former.get(at) ?? -1]?.uid ?? uidOfAdded(rule),
  }));
  return { ...theirs, rules };
}

const isSameAddition = (one: DraftRule, other: DraftRule): boolean =>
  (one.id !== undefined && one.id === other.id) || ruleText(one) === ruleText(other);

const partsOf = (versions: readonly Draft[]): readonly Part[] => [
  ...members,
  "order",
  ...new Set(versions.flatMap(uidsOf).map((uid) => `rule ${uid}` as const)),
];

/** Returns the identity of the rule that a part is, or undefined for another part. */
export const uidIn = (part: Part): string | undefined =>
  /^rule (?<uid>.*)$/.exec(part)?.groups?.uid;

const uidsOf = ({ rules }: Draft): readonly string[] => rules.map(({ uid }) => uid);

export const ruleIn = ({ rules }: Draft, uid: string): DraftRule | undefined =>
  rules.find((rule) => rule.uid === uid);

const inOrder = (draft: Draft, uids: readonly string[]): Draft => ({
  ...draft,
  rules: uids.flatMap((uid) => ruleIn(draft, uid) ?? []),
});
