import { HalyardError } from "./problem.ts";

/** Listeners of a client's events. A listener that throws or rejects does not disturb the others. */
type Listeners<Events extends Record<string, (argument: never) => void>> = {
  on<Name extends keyof Events>(name: Name, listener: Events[Name]): () => void;
  off<Name extends keyof Events>(name: Name, listener: Events[Name]): void;
  emit<Name extends keyof Events>(name: Name, ...given: Parameters<Events[Name]>): void;
};

export function createListeners<Events extends Record<string, (argument: never) => void>>(
  onThrown: (problem: HalyardError) => void,
): Listeners<Events> {
  const sets = new Map<keyof Events, Set<Listener>>();
  const of = (name: keyof Events) =>
    sets.get(name) ?? (sets.set(name, new Set()).get(name) as Set<Listener>);
  return {
    on(name, listener) {
      of(name).add(listener);
      return () => of(name).delete(listener);
    },
    off: (name, listener) => void of(name).delete(listener),
    emit(name, ...given) {
      // An async function turns what a listener throws into a rejection, like that of an async listener.
      for (const listener of [...of(name)])
        (async () => listener(...(given as never[])))().catch((error) =>
          onThrown(
            new HalyardError("listener", `A listener of "${name as string}" has thrown: ${error}`),
          ),
        );
    },
  };
}

type Listener = (...given: never[]) => unknown;
