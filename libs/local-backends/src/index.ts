export {
  type BackgroundProcess,
  type ExitStatus,
  settledWithin,
  startBackgroundProcess,
} from "./background-process.ts";
export { hasCode, readIfPresent, readLogTail, renameUnlessPresent } from "./files.ts";
export { findFreePort, type PortState, portState } from "./free-port.ts";
export { startGuardedServer } from "./guarded-server.ts";
export { startLocalHaproxy } from "./local-haproxy.ts";
export { type LocalNats, startLocalNats } from "./local-nats.ts";
export { type LocalPostgres, startLocalPostgres } from "./local-postgres.ts";
export { isRunning } from "./running-processes.ts";
export {
  findHaproxy,
  findNatsServer,
  findPrometheus,
  libraryVariables,
  natsServerVersion,
} from "./server-binaries.ts";
export { StartError } from "./start-error.ts";
