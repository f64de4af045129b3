export {
  type BackgroundProcess,
  type ExitStatus,
  type StopStep,
  settledWithin,
  startBackgroundProcess,
} from "./background-process.ts";
export { hasCode, readIfPresent, readLogTail } from "./files.ts";
export { findFreePort, type PortState, portState } from "./free-port.ts";
export { type LocalNats, type LocalNatsOptions, startLocalNats } from "./local-nats.ts";
export {
  type LocalPostgres,
  type LocalPostgresOptions,
  startLocalPostgres,
} from "./local-postgres.ts";
export { type FindNatsServerOptions, findNatsServer } from "./nats-server-binary.ts";
export { identifyProcess, isSameProcessRunning, type ProcessIdentity } from "./process-identity.ts";
export { type Reaper, startReaper } from "./reaper.ts";
export { StartError } from "./start-error.ts";
