import { useNavigate, useSearch } from "@tanstack/react-router";
import type { Environment } from "../api/schema.d.ts";
import { useKeySession } from "./session.tsx";

/**
 * The environment on which the pages work: that of the address, otherwise that of the key.
 */
export function useEnvironment(): { environment: Environment; choose: (name: string) => void } {
  const { me } = useKeySession();
  const navigate = useNavigate();
  const { env } = useSearch({ strict: false }) as { env?: string };
  const own = me.environments.find(({ id }) => id === me.key.environment_id);
  const environment = me.environments.find(({ name }) => name === env) ?? own;
  if (environment === undefined) throw new Error("the environment of the key is not in its list");
  return {
    environment,
    choose: (name) =>
      void navigate({ to: ".", search: (before: object) => ({ ...before, env: name }) } as never),
  };
}

/** Returns the name of the environment in the address if the project has no such environment. */
export function useMissingEnvironment(): string | undefined {
  const { me } = useKeySession();
  const { env } = useSearch({ strict: false }) as { env?: string };
  return me.environments.some(({ name }) => name === env) ? undefined : env;
}
