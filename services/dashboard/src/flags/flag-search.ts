import type { Flag, FlagOrder, FlagStateSummary, FlagType, ValueType } from "../api/schema.d.ts";
import { serveText } from "../state/serve.ts";
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

/** The types of values. */
export const valueTypes: readonly { value: ValueType; label: string; note: string }[] = [
  { value: "boolean", label: "On or off", note: "true or false" },
  { value: "string", label: "Text", note: "such as a color or a name" },
  { value: "number", label: "Number", note: "such as a limit" },
  { value: "object", label: "JSON object", note: "several settings together" },
];

export const valueTypeLabel = (type: ValueType): string =>
  valueTypes.find(({ value }) => value === type)?.label ?? type;

/** The filters of the flag list, which are in the address. */
export type FlagSearch = {
  q?: string | undefined;
  type?: FlagType | undefined;
  state?: "on" | "off" | undefined;
  stale?: true | undefined;
  tag?: string | undefined;
  owner?: string | undefined;
  /** Archived flags are hidden without it. */
  archived?: "only" | "with" | undefined;
  /** The order as the API names it. The default is the key. */
  sort?: FlagOrder | undefined;
};

/** The orders of the list. Each can be reversed. */
export const flagOrders = [
  { value: "key", label: "By key" },
  { value: "name", label: "By name" },
  { value: "created_at", label: "By creation" },
  { value: "updated_at", label: "By last change" },
  { value: "last_evaluated_at", label: "By last evaluation" },
] as const;

type OrderField = (typeof flagOrders)[number]["value"];

export function readFlagSearch(search: Record<string, unknown>): FlagSearch {
  const { q, type, state, stale, tag, owner, archived, sort } = search;
  const text = (value: unknown) =>
    (typeof value === "string" && value !== "") || typeof value === "number"
      ? String(value)
      : undefined;
  const isOrder = (value: unknown): value is FlagOrder =>
    flagOrders.some(({ value: field }) => value === field || value === `-${field}`);
  return {
    q: text(q),
    type: flagTypes.find(({ value }) => value === type)?.value,
    state: state === "on" || state === "off" ? state : undefined,
    stale: stale === true || stale === "true" ? true : undefined,
    tag: text(tag),
    owner: text(owner),
    archived: archived === "only" || archived === "with" ? archived : undefined,
    sort: isOrder(sort) ? sort : undefined,
  };
}

/** A flag's state in one environment, as the list shows it. */
export type ListedState = Readonly<Omit<FlagStateSummary, "updated_at">>;

export type ListedFlag = Flag & { readonly environments: readonly ListedState[] };

export const stateIn = (flag: ListedFlag, environmentId: string): ListedState | undefined =>
  flag.environments.find((state) => state.environment_id === environmentId);

/** Says who gets a flag, in a few words. For a typed flag, it names what is served. */
export function summaryOf({
  enabled,
  rollout_percentage: percentage,
  rule_count: rules,
  serve,
}: ListedState): string {
  if (!enabled) return "Off";
  const served = serve === undefined ? [] : [serveText(serve)];
  if (rules > 0) return [...served, rules === 1 ? "1 rule" : `${rules} rules`].join(", ");
  if (percentage < 100) return [...served, `${percentage} %`].join(", ");
  return served[0] ?? "Everyone";
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
  { q, type, state, stale, tag, owner, archived }: FlagSearch,
  { environmentId, staleIds }: { environmentId: string; staleIds: ReadonlySet<string> | undefined },
): readonly ListedFlag[] {
  const words = q?.toLowerCase().split(/\s+/).filter(Boolean) ?? [];
  return flags.filter((flag) => {
    if (!isListed(flag, archived)) return false;
    if (type !== undefined && flag.type !== type) return false;
    if (tag !== undefined && !flag.tags.includes(tag)) return false;
    if (owner !== undefined && flag.owner !== owner) return false;
    if (stale === true && staleIds?.has(flag.id) !== true) return false;
    if (state !== undefined && stateIn(flag, environmentId)?.enabled !== (state === "on"))
      return false;
    if (words.length === 0) return true;
    const { key, name, description, tags } = flag;
    const text = [key, name, description, flag.owner, ...tags].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Returns whether the filter of the archive lists a flag. */
export const isListed = (flag: ListedFlag, archived: FlagSearch["archived"]): boolean =>
  archived === "with" || (flag.archived_at !== null) === (archived === "only");

/**
 * Returns the flags, which are in the order of their keys, in another order. As in the API, equal flags stay in the
 * order of their keys, and a flag that was never evaluated counts as evaluated before all others.
 */
export function sortFlags(
  flags: readonly ListedFlag[],
  order: FlagOrder = "key",
): readonly ListedFlag[] {
  if (order === "key") return flags;
  const { field, isDescending } = orderParts(order);
  const rankOf = (flag: ListedFlag) => flag[field] ?? "";
  return flags.toSorted((one, other) => {
    const [a, b] = isDescending ? [rankOf(other), rankOf(one)] : [rankOf(one), rankOf(other)];
    if (a === b) return 0;
    return a < b ? -1 : 1;
  });
}

export function orderParts(order: FlagOrder): { field: OrderField; isDescending: boolean } {
  const isDescending = order.startsWith("-");
  return { field: order.slice(isDescending ? 1 : 0) as OrderField, isDescending };
}

/** Returns all tags of the flags, in alphabetical order. */
export const tagsOf = (flags: readonly ListedFlag[]): string[] =>
  [...new Set(flags.flatMap(({ tags }) => tags))].sort();

export const ownersOf = (flags: readonly ListedFlag[]): string[] =>
  [...new Set(flags.flatMap(({ owner }) => owner ?? []))].sort();

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
