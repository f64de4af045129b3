export { HalyardProvider, type HalyardProviderOptions } from "./provider.ts";
