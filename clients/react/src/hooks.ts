import type { Client } from "@halyard/browser-sdk";
import { useCallback, useState, useSyncExternalStore } from "react";
import { type Flags, type Provided, useProvided } from "./provider.ts";

/**
 * Declares the keys of the flags, so that the compiler rejects others:
 * `declare module "@halyard/react" { interface Register { flagKey: "new-checkout" | "search" } }`.
 */
// biome-ignore lint/suspicious/noEmptyInterface: applications add the member by declaration merging.
export interface Register {}

export type FlagKey = Register extends { flagKey: infer Key extends string } ? Key : string;

/** Returns the value of a flag, and renders again when it changes. Without a value, returns the fallback. */
export function useFlag(key: FlagKey, fallback = false): boolean {
  return useFlagOf(useProvided(), key, fallback);
}

/** Returns the values of all flags, and renders again when one changes. */
export function useFlags(): Flags {
  const { client, serverFlags } = useProvided();
  return useSyncExternalStore(useSubscribe(client), client.allFlags, () => serverFlags);
}

/**
 * Returns true while the values are current, and renders again when that changes. It is false on a server, during
 * hydration, and as long as Halyard cannot be reached.
 */
export function useReady(): boolean {
  const { client } = useProvided();
  const subscribe = useCallback(
    (onChange: () => void) => {
      const ends = [client.on("current", onChange), client.on("stale", onChange)];
      return () => {
        for (const end of ends) end();
      };
    },
    [client],
  );
  return useSyncExternalStore(
    subscribe,
    () => client.status.current,
    () => false,
  );
}

/**
 * Returns the value of a flag, and suspends until the values are current, at most for 5 s. With `stored: "show"`, stored
 * or bootstrapped values are enough. It does not suspend on a server and in a component that a server has rendered. The
 * `Suspense` boundary must be below the provider.
 */
export function useSuspenseFlag(
  key: FlagKey,
  fallback = false,
  { stored }: { stored?: "show" | undefined } = {},
): boolean {
  const provided = useProvided();
  const value = useFlagOf(provided, key, fallback);
  const rendersForServer = useSyncExternalStore(
    neverChanges,
    () => false,
    () => true,
  );
  const [cameFromServer] = useState(rendersForServer);
  if (!cameFromServer) suspendUntilFirstValues(provided.client, stored === "show");
  return value;
}

/** Returns the client, for example to switch the user. */
export function useHalyardClient(): Client {
  return useProvided().client;
}

function useFlagOf({ client, serverFlags }: Provided, key: string, fallback: boolean): boolean {
  return useSyncExternalStore(
    useSubscribe(client),
    () => client.isEnabled(key, fallback),
    () => (Object.hasOwn(serverFlags, key) ? (serverFlags[key] ?? fallback) : fallback),
  );
}

function useSubscribe(client: Client): (onChange: () => void) => () => void {
  return useCallback((onChange) => client.on("change", onChange), [client]);
}

const neverChanges = () => () => {};

const firstValues = new WeakMap<Client, { promise: Promise<void>; isSettled: boolean }>();

/** Throws the promise of the first values, as React expects it. */
function suspendUntilFirstValues(client: Client, showsStored: boolean): void {
  const { status } = client;
  if (status.current || (showsStored && status.source !== "none")) return;
  let waiting = firstValues.get(client);
  if (waiting === undefined) {
    const settled = () => {
      created.isSettled = true;
    };
    const created = { promise: client.ready().then(settled), isSettled: false };
    firstValues.set(client, created);
    waiting = created;
  }
  if (!waiting.isSettled) throw waiting.promise;
}
