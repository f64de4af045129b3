import type { ClientEvents, Listener } from "./client.ts";

type Listeners = {
  on<E extends keyof ClientEvents>(event: E, listener: Listener<E>): () => void;
  off<E extends keyof ClientEvents>(event: E, listener: Listener<E>): void;
  emit<E extends keyof ClientEvents>(event: E, payload: ClientEvents[E]): void;
  clear(): void;
};

/** Creates the listeners of a client. `onThrow` receives what a listener throws or rejects with. */
export function createListeners(
  onThrow: (event: keyof ClientEvents, error: unknown) => void,
): Listeners {
  const listeners = new Map<string, Set<(payload: never) => unknown>>();

  function off(event: string, listener: unknown): void {
    listeners.get(event)?.delete(listener as () => void);
  }

  return {
    on(event, listener) {
      // Plain JavaScript can pass anything.
      if (typeof listener !== "function") return () => undefined;
      const ofEvent = listeners.get(event) ?? new Set();
      listeners.set(event, ofEvent.add(listener));
      return () => off(event, listener);
    },
    off,
    emit(event, payload) {
      for (const listener of [...(listeners.get(event) ?? [])]) {
        try {
          const result = listener(payload as never);
          // An async listener would otherwise end the process with an unhandled rejection.
          if (result instanceof Promise) result.catch((error: unknown) => onThrow(event, error));
        } catch (error) {
          onThrow(event, error);
        }
      }
    },
    clear: () => listeners.clear(),
  };
}
