import type { Flag, FlagStateSummary, FlagType } from "../api/schema.d.ts";
import type { Tone } from "../ui/badge.tsx";

export const flagTypes: readonly { value: FlagType; label: string; note: string }[] = [
  { value: "release", label: "Release", note: "a feature on its way to everybody" },
  { value: "experiment", label: "Experiment", note: "a comparison that ends" },
  { value: "operational", label: "Operational", note: "how the system runs" },
  { value: "kill_switch", label: "Kill switch", note: "off in an emergency" },
  { value: "permission", label: "Permission", note: "for some customers, permanently" },
];

export const typeLabel = (type: FlagType): string =>
  flagTypes.find(({ value }) => value === type)?.label ?? type;

/** The filters of the flag list, which are in the address. */
export type FlagSearch = {
  q?: string | undefined;
  type?: FlagType | undefined;
  state?: "on" | "off" | undefined;
  stale?: true | undefined;
};

export function readFlagSearch(search: Record<string, unknown>): FlagSearch {
  const { q, type, state, stale } = search;
  return {
    q: typeof q === "string" && q !== "" ? q : undefined,
    type: flagTypes.find(({ value }) => value === type)?.value,
    state: state === "on" || state === "off" ? state : undefined,
    stale: stale === true || stale === "true" ? true : undefined,
  };
}

/** A flag's state in one environment, as the list shows it. */
export type ListedState = Readonly<Omit<FlagStateSummary, "updated_at">>;

export type ListedFlag = Flag & { readonly environments: readonly ListedState[] };

export const stateIn = (flag: ListedFlag, environmentId: string): ListedState | undefined =>
  flag.environments.find((state) => state.environment_id === environmentId);

/** Says who gets a flag, in a few words. */
export function summaryOf({
  enabled,
  rollout_percentage: percentage,
  rule_count: rules,
}: ListedState): string {
  if (!enabled) return "Off";
  if (rules > 0) return rules === 1 ? "1 rule" : `${rules} rules`;
  return percentage === 100 ? "Everyone" : `${percentage} %`;
}

/** Returns the color of a state. A flag that is on for 0 % of users has the color of one that is off. */
export const toneOf = ({
  enabled,
  rollout_percentage: percentage,
  rule_count: rules,
}: Pick<ListedState, "enabled" | "rollout_percentage" | "rule_count">): Tone =>
  enabled && (rules > 0 || percentage > 0) ? "on" : "neutral";

/** Returns the flags that match all filters. `staleIds` are the ids of unused flags. */
export function filterFlags(
  flags: readonly ListedFlag[],
  { q, type, state, stale }: FlagSearch,
  { environmentId, staleIds }: { environmentId: string; staleIds: ReadonlySet<string> | undefined },
): readonly ListedFlag[] {
  const words = q?.toLowerCase().split(/\s+/).filter(Boolean) ?? [];
  return flags.filter((flag) => {
    if (type !== undefined && flag.type !== type) return false;
    if (stale === true && staleIds?.has(flag.id) !== true) return false;
    if (state !== undefined && stateIn(flag, environmentId)?.enabled !== (state === "on"))
      return false;
    if (words.length === 0) return true;
    const text = `${flag.key} ${flag.name} ${flag.description}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Letters that are not written without their marks. */
const spelled: Readonly<Record<string, string>> = { ä: "ae", ö: "oe", ü: "ue", ß: "ss" };

/** Suggests a key for a name: "New checkout (EU)" becomes "new-checkout-eu", and "Größe" becomes "groesse". */
export function suggestKey(name: string): string {
  return name
    .normalize("NFC")
    .toLowerCase()
    .replaceAll(/[äöüß]/g, (letter) => spelled[letter] ?? letter)
    .normalize("NFKD")
    .replaceAll(/[\u0300-\u036f]/g, "")
    .replaceAll(/[^a-z0-9._]+/g, "-")
    .replaceAll(/^[^a-z0-9]+|-+$/g, "")
    .slice(0, 128);
}
