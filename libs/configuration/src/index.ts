export { ConfigurationError } from "./configuration-error.ts";
export {
  type DocumentedVariable,
  documentVariables,
  readEnvironment,
  readVariable,
  variable,
} from "./environment.ts";
export { natsServers } from "./nats-servers.ts";
export { isSafeUrl, publicUrlVariable } from "./public-url.ts";
export {
  burstVariable,
  commaSeparated,
  flagEventsMaxBytesVariable,
  jetstreamReplicasVariable,
  keyRate,
  keyRateVariables,
  type ListenConfig,
  type LogLevel,
  limitVariable,
  listenHost,
  listenVariables,
  natsVariables,
  operatorTokenDigestVariable,
  perSecondVariable,
  portVariable,
  postgresMaxConnectionsVariable,
  postgresUrlVariable,
  readPostgresOwnerUrl,
  retentionDaysVariable,
  sharedVariables,
  urlOf,
} from "./shared-variables.ts";
export {
  messagePrivateKeyVariable,
  messagePublicKeysVariable,
  requireInProduction,
  signingPrivateKeyVariable,
  signingPublicKeysVariable,
} from "./signing-variables.ts";
