import { HalyardError } from "./problem.ts";

/** Listeners of a client's events. A listener that throws does not disturb the others. */
export type Listeners<Events extends Record<string, (argument: never) => void>> = {
  on<Name extends keyof Events>(name: Name, listener: Events[Name]): () => void;
  off<Name extends keyof Events>(name: Name, listener: Events[Name]): void;
  emit<Name extends keyof Events>(name: Name, ...given: Parameters<Events[Name]>): void;
};

export function createListeners<Events extends Record<string, (argument: never) => void>>(
  onThrown: (problem: HalyardError) => void,
): Listeners<Events> {
  const sets = new Map<keyof Events, Set<Events[keyof Events]>>();
  const of = (name: keyof Events) => {
    const set = sets.get(name) ?? new Set();
    sets.set(name, set);
    return set;
  };
  return {
    on(name, listener) {
      of(name).add(listener);
      return () => of(name).delete(listener);
    },
    off: (name, listener) => void of(name).delete(listener),
    emit(name, ...given) {
      for (const listener of [...of(name)])
        try {
          (listener as (...given: Parameters<Events[typeof name]>) => void)(...given);
        } catch (error) {
          onThrown(
            new HalyardError("listener", `A listener of "${name as string}" has thrown: ${error}`),
          );
        }
    },
  };
}
