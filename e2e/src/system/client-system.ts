import type { ServiceProcess } from "@halyard/testing";
import type { System } from "./system.ts";

/** A system with a gateway, as clients use it. */
export type ClientSystem = { system: System; gateway: ServiceProcess };
