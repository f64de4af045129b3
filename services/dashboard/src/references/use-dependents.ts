import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { unwrap } from "../api/client.ts";
import { patiently } from "../api/patiently.ts";
import type { Environment } from "../api/schema.d.ts";
import { type KeySession, useKeySession } from "../session/session.tsx";
import { useKeyQuery } from "../session/use-key-query.ts";
import { dependentsWarning } from "./dependents.ts";

type FlagName = { readonly id: string; readonly key: string };

const keyOf = ({ key }: FlagName) => ["dependents", key];

function readDependents({ api }: Pick<KeySession, "api">, id: string, signal: AbortSignal) {
  const params = { path: { id } };
  // A copy of many flags reads them for each flag that it switches.
  return patiently(() => unwrap(api.GET("/api/v1/flags/{id}/dependents", { params, signal })));
}

/** Reads the flags that require a flag, directly or through others, in every environment that the key can read. */
export const useDependents = (flag: FlagName) =>
  useKeyQuery(keyOf(flag), (session, signal) => readDependents(session, flag.id, signal));

/**
 * Returns a function that warns before a flag is switched in an environment, if this turns off flags that require it. It
 * reads these flags each time, because another person can have added a requirement.
 */
export function useDependentsWarning({ id: environmentId }: Pick<Environment, "id">) {
  const { api } = useKeySession();
  const client = useQueryClient();
  return useCallback(
    async (flag: FlagName, enabled: boolean): Promise<string | undefined> => {
      const found = await client
        .fetchQuery({
          queryKey: keyOf(flag),
          queryFn: ({ signal }) => readDependents({ api }, flag.id, signal),
          staleTime: 0,
        })
        .catch(() => undefined);
      // Few flags require that another one is off, so a failed read does not delay that one is turned on.
      if (found === undefined)
        return enabled
          ? undefined
          : `Halyard could not read which flags require ${flag.key}. They may turn off too.`;
      return dependentsWarning(flag.key, found, { environmentId, enabled });
    },
    [api, client, environmentId],
  );
}
