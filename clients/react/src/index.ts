"use client";
// Server components may import the package: a bundler replaces it by references, because its React has no hooks.

export { createTestClient, defineFlags, type TestClient } from "@halyard/browser-sdk";
export {
  type FlagKey,
  type Register,
  useFlag,
  useFlags,
  useHalyardClient,
  useReady,
  useSuspenseFlag,
  useValue,
} from "./hooks.ts";
export { type Flags, HalyardProvider, type HalyardProviderProps } from "./provider.ts";
