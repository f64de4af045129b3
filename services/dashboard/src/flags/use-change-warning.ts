import { useCallback } from "react";
import type { Environment } from "../api/schema.d.ts";
import { useDependentsWarning } from "../references/use-dependents.ts";
import type { State } from "../state/flag-state.ts";
import type { ListedFlag } from "./flag-search.ts";
import { useReadersWarning, useTurnOnWarning } from "./use-readers-warning.ts";

/** Warnings before a change in an environment: about SDKs that do not support it, and flags that turn off too. */

/** Returns a function that warns before a flag gets another state. */
export function useStateWarning(environment: Environment) {
  const readersWarning = useReadersWarning(environment);
  const dependentsWarning = useDependentsWarning(environment);
  return useCallback(
    (flag: ListedFlag, before: State, after: State) =>
      joinWarnings([
        readersWarning(before, after),
        ...(before.enabled === after.enabled ? [] : [dependentsWarning(flag, after.enabled)]),
      ]),
    [readersWarning, dependentsWarning],
  );
}

/** Returns a function that warns before a flag is switched to one position, or to both at different times. */
export function useSwitchWarning(environment: Environment) {
  const turnOnWarning = useTurnOnWarning(environment);
  const dependentsWarning = useDependentsWarning(environment);
  return useCallback(
    (flag: ListedFlag, positions: readonly boolean[]) =>
      joinWarnings([
        ...(positions.includes(true) ? [turnOnWarning(flag)] : []),
        ...positions.map((enabled) => dependentsWarning(flag, enabled)),
      ]),
    [turnOnWarning, dependentsWarning],
  );
}

async function joinWarnings(
  warnings: readonly Promise<string | undefined>[],
): Promise<string | undefined> {
  const texts = await Promise.all(warnings);
  return texts.filter(Boolean).join(" ") || undefined;
}
