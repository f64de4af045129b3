import * as contract from "@halyard/contracts";
import { answer } from "@halyard/service";
import type { Routes } from "../access/routes.ts";
import type { ReadStatus } from "./read-status.ts";

export function registerStatusRoutes(routes: Routes, readStatus: ReadStatus): void {
  routes.read(contract.getStatus, async () => answer.ok(await readStatus()));
}
