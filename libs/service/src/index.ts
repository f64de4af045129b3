export { type Answer, answer, createProblem, isProblem, type Problem } from "./answer.ts";
export { AnswerMismatchError, answerableErrors } from "./answer-checks.ts";
export { anyOriginHeaders, isOpenToAllOrigins, openPrefixes } from "./any-origin.ts";
export { type App, type AppOptions, createApp } from "./app.ts";
export { ConfigurationError } from "./configuration-error.ts";
export { hasDuplicateMembers } from "./duplicate-members.ts";
export { checkIfMatch, checkMatches, etagOf, namesTag } from "./entity-tag.ts";
export {
  type DocumentedVariable,
  documentVariables,
  readEnvironment,
  type VariableNotes,
  variable,
} from "./environment.ts";
export { noSuchRoute, sendProblem, writeProblem } from "./error-answers.ts";
export { fixedAnswer } from "./fixed-answer.ts";
export type { Readiness, ReadReadiness } from "./health.ts";
export { checkIdempotencyKey } from "./idempotency-key.ts";
export { compileInputChecks, type InputChecks } from "./input-checks.ts";
export { type ListenAddress, ListenError } from "./listen.ts";
export { createLogger, type Logger, pathOf } from "./logger.ts";
export { rejectMalformed } from "./malformed-http.ts";
export { createMetrics, type Metrics } from "./metrics.ts";
export { type MetricsServer, startMetricsServer } from "./metrics-server.ts";
export { natsServers } from "./nats-servers.ts";
export { onceConnected } from "./once-connected.ts";
export { cursorOf, idOfCursor, noSuchCursor, pageOf, readCursor } from "./page.ts";
export { isWellEncoded } from "./query-values.ts";
export { announcesBody, readJsonBody } from "./read-json-body.ts";
export { releaseAll } from "./release.ts";
export { pathAndQueryOf } from "./request-target.ts";
export {
  type Awaitable,
  type RequestFacts,
  type RouteInput,
  type RouteOptions,
  registerRoute,
} from "./route.ts";
export { type RunningService, runService, type ServiceOptions } from "./run-service.ts";
export { heartbeatEvent, keepAlive, retryLine } from "./server-sent-events.ts";
export {
  burstVariable,
  commaSeparated,
  flagEventsMaxBytesVariable,
  hostVariable,
  jetstreamReplicasVariable,
  keyRate,
  keyRateVariables,
  type LogLevel,
  limitVariable,
  listenHost,
  logLevelVariable,
  metricsPortVariable,
  modeVariable,
  natsVariables,
  operatorTokenDigestVariable,
  perSecondVariable,
  portVariable,
  postgresMaxConnectionsVariable,
  postgresUrlVariable,
  readPostgresOwnerUrl,
  retentionDaysVariable,
  sharedVariables,
  trustedProxiesVariable,
  urlOf,
} from "./shared-variables.ts";
export {
  requireInProduction,
  signingPrivateKeyVariable,
  signingPublicKeysVariable,
} from "./signing-variables.ts";
export { runCommand, startOrExit } from "./start-or-exit.ts";
export { UnavailableError } from "./unavailable-error.ts";
