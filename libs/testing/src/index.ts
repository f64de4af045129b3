export { testBackends } from "./backends.ts";
export { type Called, type CallOptions, call } from "./call.ts";
export { type Certificates, makeCertificates } from "./certificates.ts";
export { type CollectedSpan, type Collector, startCollector } from "./collector.ts";
export { type EventStream, openEventStream, type StreamEvent } from "./event-stream.ts";
export { eventually } from "./eventually.ts";
export { type ClusterNode, type NatsCluster, startNatsCluster } from "./nats-cluster.ts";
export { natsLogin } from "./nats-login.ts";
export { type NatsProxy, startNatsProxy } from "./nats-proxy.ts";
export { once } from "./once.ts";
export { readComplete, readEpoch } from "./read-complete.ts";
export { type ReceivedRequest, type Receiver, startReceiver } from "./receiver.ts";
export { type RecordedSpan, recordSpans } from "./recorded-spans.ts";
export { recordedStatements, scansOf } from "./recorded-statements.ts";
export { type RestartablePostgres, startRestartablePostgres } from "./restartable-postgres.ts";
export { restoreMessagesAfter } from "./restore-messages.ts";
export { seededRandom, testSeed } from "./seed.ts";
export { type ServiceProcess, startServiceProcess } from "./service-process.ts";
export { openSnapshotBucket, recreateSnapshot, type SnapshotBucket } from "./snapshot-bucket.ts";
export {
  type Ceremony,
  createPasskey,
  type SoftwarePasskey,
  signWithPasskey,
} from "./software-authenticator.ts";
export { stepClock } from "./step-clock.ts";
export {
  deletedProjectInSnapshot,
  flagInSnapshot,
  keyInSnapshot,
  type TenantIds,
  tenantInSnapshot,
} from "./tenant-in-snapshot.ts";
export { connectAsSuperuser, createTestDatabase, type TestDatabase } from "./test-database.ts";
export {
  natsServerBinary,
  type RestartableNats,
  startRestartableNats,
  startTestNats,
  type TestNats,
} from "./test-nats.ts";
export {
  payloadOf,
  privateKeyOf,
  signingSettings,
  testMessageSigner,
  testMessageVerifier,
  testSignatures,
  testSigner,
  testVerification,
} from "./test-signing.ts";
export { isThorough, someOf } from "./thorough.ts";
