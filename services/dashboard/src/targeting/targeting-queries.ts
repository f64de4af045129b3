import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { unwrap } from "../api/client.ts";
import { type FlagInPage, useFlagInPage } from "../flags/flag-page.tsx";
import { useFlags } from "../flags/flag-queries.ts";
import { useKeySession } from "../session/session.tsx";
import { attributeNames } from "./conditions.ts";

export const stateKey = ({ flag, environment }: FlagInPage) => [
  "flag",
  flag.key,
  "state",
  environment.id,
];

/** Reads the flag's state in the environment of the page. */
export function useFlagState() {
  const { api } = useKeySession();
  const inPage = useFlagInPage();
  const path = { flagId: inPage.flag.id, envId: inPage.environment.id };
  return useQuery({
    queryKey: stateKey(inPage),
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/flags/{flagId}/environments/{envId}", { params: { path }, signal })),
  });
}

/** Reads the operators. They change only with releases. */
export function useOperators() {
  const { api } = useKeySession();
  return useQuery({
    queryKey: ["operators"],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => {
      const { operators } = await unwrap(api.GET("/api/v1/operators", { signal }));
      return new Map(operators.map((operator) => [operator.name as string, operator]));
    },
  });
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
  const { api, me } = useKeySession();
  const { flag, environment } = useFlagInPage();
  const query = { flag_id: flag.id, action: "state" as const, limit: lastChanges };
  return useQuery({
    queryKey: ["changes", query],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId: me.project.id }, query };
      const { changes } = await unwrap(
        api.GET("/api/v1/projects/{projectId}/changes", { params, signal }),
      );
      return changes;
    },
    select: (changes) => changes.find((change) => change.environment_id === environment.id) ?? null,
  });
}
