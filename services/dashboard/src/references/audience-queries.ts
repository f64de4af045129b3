import type { QueryClient } from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import type { Audience } from "../api/schema.d.ts";
import type { KeySession } from "../session/session.tsx";
import { useKeyQuery } from "../session/use-key-query.ts";

const listKey = ["audiences"];

async function readAudiences(
  { api }: Pick<KeySession, "api">,
  signal: AbortSignal,
): Promise<readonly Audience[]> {
  return (await unwrap(api.GET("/api/v1/audiences", { signal }))).audiences;
}

/** Reads all audiences of the project, in the order of their keys. */
export const useAudiences = (isWanted = true) =>
  useKeyQuery(listKey, readAudiences, { enabled: isWanted });

/** Reads all audiences by their keys, outside of components. */
export async function fetchAudiences(
  client: QueryClient,
  session: Pick<KeySession, "api">,
): Promise<ReadonlyMap<string, Audience>> {
  const audiences = await client.fetchQuery({
    queryKey: listKey,
    queryFn: ({ signal }) => readAudiences(session, signal),
  });
  return new Map(audiences.map((audience) => [audience.key, audience]));
}

export const audienceKey = (key: string) => [...listKey, key];

/** Reads one audience. */
export const useAudience = (key: string) =>
  useKeyQuery(audienceKey(key), ({ api }, signal) =>
    unwrap(api.GET("/api/v1/audiences/{key}", { params: { path: { key } }, signal })),
  );
