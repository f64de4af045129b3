import type {
  BooleanFlags,
  Client,
  DeclaredFlags,
  FallbackOf,
  KeyOf,
  Widened,
} from "@halyard/browser-sdk";
import { useCallback, useState, useSyncExternalStore } from "react";
import { type Provided, useProvided } from "./provider.ts";

/**
 * Declares the flags, so that the compiler rejects other keys and types:
 * `declare module "@halyard/react" { interface Register { flags: typeof flags } }`, where `flags` is from `defineFlags`,
 * or only their keys: `interface Register { flagKey: "new-checkout" | "search" }`.
 */
// biome-ignore lint/suspicious/noEmptyInterface: applications add a member by declaration merging.
export interface Register {}

type Declared = DeclaredIn<Register>;

type DeclaredIn<Members> = Members extends { flags: infer Types extends DeclaredFlags }
  ? Types
  : Members extends { flagKey: infer Key extends string }
    ? Key
    : string;

/** A key that `Register` declares, of a flag of any type. */
export type FlagKey = KeyOf<Declared>;

/** Returns the value of a boolean flag, and renders again when it changes. Without a value, returns the fallback. */
export function useFlag(key: KeyOf<Declared, "boolean">, fallback = false): boolean {
  return useRead(useProvided(), (client) => client.isEnabled(key, fallback));
}

/**
 * Returns a value of the fallback's type, and renders again when it changes. Objects are frozen. Without a value of this
 * type, returns the fallback.
 */
export function useValue<Key extends FlagKey, Value extends FallbackOf<Declared, Key>>(
  key: Key,
  fallback: Value,
): Widened<Value> {
  return useRead(useProvided(), (client) => client.details(key, fallback).value);
}

/** Returns the values of all boolean flags, and renders again when any flag changes. */
export function useFlags(): BooleanFlags<Declared> {
  return useRead(useProvided(), (client) => client.allFlags());
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
  key: KeyOf<Declared, "boolean">,
  fallback = false,
  { stored }: { stored?: "show" | undefined } = {},
): boolean {
  const provided = useProvided();
  const value = useRead(provided, (client) => client.isEnabled(key, fallback));
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
export function useHalyardClient(): Client<Declared> {
  return useProvided().client as Client<Declared>;
}

/** Reads from the client, and from the initial values on a server and during hydration. */
function useRead<Value>({ client, initial }: Provided, read: (client: Client) => Value): Value {
  const subscribe = useCallback((onChange: () => void) => client.on("change", onChange), [client]);
  return useSyncExternalStore(
    subscribe,
    () => read(client),
    () => read(initial),
  );
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
