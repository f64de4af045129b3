import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { unwrap } from "../api/client.ts";
import { readChanges } from "../changes/read-changes.ts";
import { type FlagInPage, useFlagInPage } from "../flags/flag-page.tsx";
import { useFlags } from "../flags/flag-queries.ts";
import { statePathOf, stateRoute } from "../flags/state-route.ts";
import { type KeySession, useKeySession } from "../session/session.tsx";
import { useKeyQuery } from "../session/use-key-query.ts";
import type { Option } from "../ui/fields.tsx";
import { attributeNames } from "./conditions.ts";

export const stateKey = ({ flag, environment }: FlagInPage) => [
  "flag",
  flag.key,
  "state",
  environment.id,
];

/** Reads the flag's state in the environment of the page. */
export function useFlagState() {
  const inPage = useFlagInPage();
  const params = { path: statePathOf(inPage) };
  return useKeyQuery(stateKey(inPage), ({ api }, signal) =>
    unwrap(api.GET(stateRoute, { params, signal })),
  );
}

/** Reads the operators. They change only with releases. */
export function useOperators() {
  const read = async ({ api }: KeySession, signal: AbortSignal) => {
    const { operators } = await unwrap(api.GET("/api/v1/operators", { signal }));
    return new Map(operators.map((operator) => [operator.name as string, operator]));
  };
  return useKeyQuery(["operators"], read, { staleTime: Number.POSITIVE_INFINITY });
}

/** Returns the variations of the flag of the page as choices. A boolean flag has none. */
export function useVariationOptions(): readonly Option<string>[] {
  const { variations } = useFlagInPage().flag;
  return useMemo(
    () =>
      (variations ?? []).map(({ key, name }) => ({
        value: key,
        label: key,
        ...(name !== undefined && { note: name }),
      })),
    [variations],
  );
}

/** Returns names of attributes to suggest, from the rules of the project. Until `isWanted`, they are not read. */
export function useAttributeNames(isWanted: boolean): readonly string[] {
  const { data } = useFlags(isWanted);
  return useMemo(
    () => attributeNames((data ?? []).flatMap((flag) => flag.targeting_rules)),
    [data],
  );
}

/** Changes among which the last one of this environment is looked for. */
const lastChanges = 20;

/** Reads the last change of the flag in this environment, to say who made it. */
export function useLastChange() {
  const session = useKeySession();
  const { flag, environment } = useFlagInPage();
  const query = { flag_id: flag.id, action: "state" as const, limit: lastChanges };
  return useQuery({
    queryKey: ["changes", query],
    queryFn: async ({ signal }) => (await readChanges(session, query, signal)).changes,
    select: (changes) => changes.find((change) => change.environment_id === environment.id) ?? null,
  });
}
