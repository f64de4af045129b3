import { useSyncExternalStore } from "react";

/** The open question. All requests that wait for a confirmation share one. */
let open: PromiseWithResolvers<boolean> | undefined;
const listeners = new Set<() => void>();

/** Asks the person to confirm the sign-in, in the dialog. Returns whether it is confirmed. */
export function confirmSignIn(): Promise<boolean> {
  if (open === undefined) set(Promise.withResolvers<boolean>());
  return open?.promise ?? Promise.resolve(false);
}

/** Returns the function that answers the open question; undefined while there is none. */
export function useConfirmation(): ((isConfirmed: boolean) => void) | undefined {
  const question = useSyncExternalStore(subscribe, () => open);
  if (question === undefined) return undefined;
  return (isConfirmed) => {
    set(undefined);
    question.resolve(isConfirmed);
  };
}

function set(question: typeof open): void {
  open = question;
  for (const notify of listeners) notify();
}

function subscribe(notify: () => void): () => void {
  listeners.add(notify);
  return () => listeners.delete(notify);
}
