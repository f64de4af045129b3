import { type QueryClient, skipToken, useQuery, useQueryClient } from "@tanstack/react-query";
import { type Api, unwrap } from "../api/client.ts";
import type { KeySession } from "../session/session.tsx";
import { useKeyQuery } from "../session/use-key-query.ts";
import type { ListedFlag } from "./flag-search.ts";

/** Days without an evaluation after which a flag counts as stale. */
export const staleDays = 30;

const listKey = ["flags"];
const firstFlagsKey = ["first-flags"];
/** Flags that the first read of the list shows while it reads the others. They fill a window several times. */
const firstFlags = 200;

type Flags = readonly ListedFlag[];

/** Reads all flags of the project with their states in every environment, in the order of their keys. */
export function useFlags(isWanted = true) {
  const client = useQueryClient();
  const read = async ({ api }: KeySession, signal: AbortSignal): Promise<Flags> => {
    const readPart = async (part: { limit?: number; cursor?: string }) => {
      const query = { include: "environments" as const, ...part };
      const found = await unwrap(api.GET("/api/v1/flags", { params: { query }, signal }));
      return { flags: found.flags as Flags, next: found.next_cursor ?? undefined };
    };
    if (client.getQueryData(listKey) !== undefined) return (await readPart({})).flags;
    const first = await readPart({ limit: firstFlags });
    if (first.next === undefined) return first.flags;
    client.setQueryData<Flags>(firstFlagsKey, first.flags);
    return [...first.flags, ...(await readPart({ cursor: first.next })).flags];
  };
  return useKeyQuery(listKey, read, { enabled: isWanted });
}

/** Returns the first flags as soon as `useFlags` has read them. */
export const useFirstFlags = (): Flags | undefined =>
  useQuery<Flags>({ queryKey: firstFlagsKey, queryFn: skipToken }).data;

function changeLists(client: QueryClient, change: (flags: Flags) => Flags): void {
  for (const key of [listKey, firstFlagsKey])
    client.setQueryData<Flags>(key, (flags) => flags && change(flags));
}

/** Reads the ids of the flags without evaluations in the last `staleDays` days. */
export function useStaleIds(isWanted: boolean) {
  const read = async ({ api }: KeySession, signal: AbortSignal) => {
    const query = { stale_days: staleDays };
    const { flags } = await unwrap(api.GET("/api/v1/flags", { params: { query }, signal }));
    return new Set(flags.map(({ id }) => id)) as ReadonlySet<string>;
  };
  return useKeyQuery(["stale-flags"], read, { enabled: isWanted });
}

/** Reads one flag with its states, or undefined if no flag has this key. */
export async function readFlag(api: Api, key: string): Promise<ListedFlag | undefined> {
  const query = { key, include: "environments" as const };
  const { flags } = await unwrap(api.GET("/api/v1/flags", { params: { query } }));
  return flags[0] as ListedFlag | undefined;
}

/** Reads one flag, or null if no flag has this key. */
export const useFlag = (key: string) =>
  useKeyQuery(["flag", key, "settings"], async ({ api }) => (await readFlag(api, key)) ?? null);

/** Changes one flag in the cached list. */
export function updateInList(
  client: QueryClient,
  key: string,
  change: (flag: ListedFlag) => ListedFlag,
): void {
  changeLists(client, (flags) => flags.map((flag) => (flag.key === key ? change(flag) : flag)));
}

/**
 * Puts a flag into the cached list, in the order of the keys, or removes the flag with this key. A response that was
 * overtaken by a newer one changes nothing.
 */
export function putIntoList(client: QueryClient, key: string, flag: ListedFlag | undefined): void {
  changeLists(client, (flags) => {
    const known = flags.find((other) => other.key === key);
    if (flag !== undefined && known?.id === flag.id && known.version > flag.version) return flags;
    const others = flags.filter((other) => other.key !== key);
    if (flag === undefined) return others;
    const at = others.findIndex((other) => other.key > key);
    return at === -1 ? [...others, flag] : others.toSpliced(at, 0, flag);
  });
}

/** Reads a flag again after a change, for the list and for its own page. */
export async function refreshFlag(client: QueryClient, api: Api, key: string): Promise<void> {
  putIntoList(client, key, await readFlag(api, key));
  await client.invalidateQueries({ queryKey: ["flag", key] });
}

/** Cancels reads of the list that are under way, and returns whether there were any. */
export async function cancelListReads(client: QueryClient): Promise<boolean> {
  const wasReading = isReadingList(client);
  await client.cancelQueries({ queryKey: listKey });
  return wasReading;
}

export const isReadingList = (client: QueryClient): boolean =>
  client.isFetching({ queryKey: listKey }) > 0;

export const invalidateList = (client: QueryClient): Promise<void> =>
  client.invalidateQueries({ queryKey: listKey });
