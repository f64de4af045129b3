import { useQueryClient } from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import { useKeyQuery } from "../session/use-key-query.ts";

/** Queries of the signed-in person. No stream announces their changes. */
const options = { staleTime: 0 };
const keys = {
  session: ["own", "session"],
  sessions: ["own", "sessions"],
  passkeys: ["own", "passkeys"],
};

export const useOwnSession = () =>
  useKeyQuery(
    keys.session,
    ({ api }, signal) => unwrap(api.GET("/api/v1/session", { signal })),
    options,
  );

export const useOwnSessions = () =>
  useKeyQuery(
    keys.sessions,
    async ({ api }, signal) => (await unwrap(api.GET("/api/v1/sessions", { signal }))).sessions,
    options,
  );

export const useOwnPasskeys = () =>
  useKeyQuery(
    keys.passkeys,
    async ({ api }, signal) => (await unwrap(api.GET("/api/v1/passkeys", { signal }))).passkeys,
    options,
  );

export type OwnSession = NonNullable<ReturnType<typeof useOwnSessions>["data"]>[number];
export type OwnPasskey = NonNullable<ReturnType<typeof useOwnPasskeys>["data"]>[number];

/** Returns a function that reads everything of the person again. */
export function useRefreshOwn(): () => Promise<void> {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: ["own"] });
}
