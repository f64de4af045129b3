export { openService } from "./open-service.ts";
export type { SweepOptions } from "./sweep.ts";
export { serviceVariables } from "./variables.ts";
export { startWorkers, type WorkerOptions, type Workers } from "./workers.ts";
