import { type QueryKey, type UseQueryOptions, useQuery } from "@tanstack/react-query";
import { type KeySession, useKeySession } from "./session.tsx";

/** Reads data with the key of the session. */
export function useKeyQuery<Data>(
  queryKey: QueryKey,
  read: (session: KeySession, signal: AbortSignal) => Promise<Data>,
  options: Omit<UseQueryOptions<Data>, "queryKey" | "queryFn"> = {},
) {
  const session = useKeySession();
  return useQuery({ ...options, queryKey, queryFn: ({ signal }) => read(session, signal) });
}
