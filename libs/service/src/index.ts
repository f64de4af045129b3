export type { ReadReadiness } from "./health.ts";
export { createLogger, type Logger } from "./logger.ts";
export { createMetrics, type Metrics } from "./metrics.ts";
export { onceConnected } from "./once-connected.ts";
export { releaseAll } from "./release.ts";
export { runService, type ServiceOptions } from "./run-service.ts";
export { runCommand, startOrExit } from "./start-or-exit.ts";
export { createTrustedPeers } from "./trusted-peers.ts";
