import type { Audience, ChangeAudienceList, Environment, MatchInput } from "../api/schema.d.ts";
import { type Proposal, titleOf } from "../proposals/proposal.ts";
import { changed, type Difference } from "../state/difference.ts";
import { protectedAmong } from "../state/protection.ts";
import { listText, matchTexts } from "../state/words.ts";

/** Returns a protected environment in which a flag uses the audience. A change of the audience is proposed then. */
export const protectedUse = (
  { used_by: uses }: Pick<Audience, "used_by">,
  environments: readonly Environment[],
): Environment | undefined =>
  protectedAmong(
    environments.filter(({ id }) => uses.some(({ environment_id }) => environment_id === id)),
  );

type Based = Pick<Audience, "key" | "version">;

type Patched = { patch: { match?: MatchInput; list?: null }; differences: readonly Difference[] };

function audienceProposal(
  { key, version }: Based,
  title: string,
  { patch, differences }: Patched,
): Proposal {
  const change = { kind: "audience" as const, audience: key, base_version: version, patch };
  return { title: titleOf(title, []), changes: [change], differences };
}

const textOf = (match: MatchInput): string => matchTexts(match).join(". ") || "none";

/** Proposes other conditions. */
export const matchProposal = (audience: Based, before: MatchInput, match: MatchInput): Proposal =>
  audienceProposal(audience, `Change who is in the audience ${audience.key}`, {
    patch: { match },
    differences: changed("Alternatives", textOf(before), textOf(match)),
  });

/** Proposes to remove the list. */
export const listRemovalProposal = (audience: Audience): Proposal =>
  audienceProposal(audience, `Remove the list of the audience ${audience.key}`, {
    patch: { list: null },
    differences: [{ label: "List", before: listText(audience.list) }],
  });

/** Proposes to add or remove entries. The title names none, because they can be personal data. */
export function entriesProposal(key: string, { add = [], remove = [] }: ChangeAudienceList) {
  const [verb, entries] = add.length > 0 ? ["Add", add] : ["Remove", remove];
  const count = entries.length === 1 ? "1 entry" : `${entries.length} entries`;
  return {
    title: `${verb} ${count} ${verb === "Add" ? "to" : "from"} the list of ${key}`,
    changes: [
      { kind: "audience_list" as const, audience: key, add: [...add], remove: [...remove] },
    ],
    differences: [
      ...add.map((entry) => ({ label: "Entry", after: entry })),
      ...remove.map((entry) => ({ label: "Entry", before: entry })),
    ],
  };
}
