export { createTestClient, type TestClient } from "@halyard/browser-sdk";
export {
  type FlagKey,
  type Register,
  useFlag,
  useFlags,
  useHalyardClient,
  useSuspenseFlag,
} from "./hooks.ts";
export { type Flags, HalyardProvider, type HalyardProviderProps } from "./provider.ts";
