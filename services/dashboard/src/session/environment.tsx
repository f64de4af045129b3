import { useNavigate, useSearch } from "@tanstack/react-router";
import { createContext, type ReactNode, use, useEffect, useState } from "react";
import type { Environment } from "../api/schema.d.ts";
import { useLeaveGuard } from "../ui/leave-guard.ts";
import { type Chosen, chooseEnvironment } from "./choose-environment.ts";
import { useKeySession } from "./session.tsx";

const ChosenContext = createContext<Chosen | undefined>(undefined);

/**
 * Keeps the environment of the pages while another person renames it, and corrects its name in the address. While there
 * is unsaved content, the pages keep even a deleted one.
 */
export function EnvironmentProvider({ children }: { children: ReactNode }) {
  const { me } = useKeySession();
  const navigate = useNavigate();
  const { env } = useSearch({ strict: false });
  const isHeld = useLeaveGuard().unsaved !== undefined;
  const [before, setBefore] = useState<Chosen>();
  const chosen = chooseEnvironment(before, { name: env, me, isHeld });
  if (chosen !== before) setBefore(chosen);

  const renamedTo = chosen.kind === "found" && env !== undefined ? chosen.environment.name : env;
  useEffect(() => {
    if (renamedTo === env) return;
    const search = (present: object) => ({ ...present, env: renamedTo });
    void navigate({ to: ".", search, replace: true, ignoreBlocker: true });
  }, [renamedTo, env, navigate]);
  return <ChosenContext value={chosen}>{children}</ChosenContext>;
}

/** Returns the environment of the address, which may be unknown or deleted. */
export function useChosen(): Chosen {
  const chosen = use(ChosenContext);
  if (chosen === undefined) throw new Error("useChosen needs an EnvironmentProvider");
  return chosen;
}

/** Returns the chosen environment: the one in the address, otherwise the key's own. */
export function useEnvironment(): { environment: Environment; choose: (name: string) => void } {
  const { me } = useKeySession();
  const navigate = useNavigate();
  const chosen = useChosen();
  const environment =
    chosen.kind === "unknown"
      ? me.environments.find(({ id }) => id === me.key.environment_id)
      : chosen.environment;
  if (environment === undefined) throw new Error("the environment of the key is not in its list");
  return {
    environment,
    choose: (name) =>
      void navigate({ to: ".", search: (before: object) => ({ ...before, env: name }) }),
  };
}
