export { apiTimeoutMs, connectNats, connectOnce } from "./connect.ts";
export { trackProblem } from "./connection-log.ts";
export { type FollowerState, watchConnection } from "./connection-watch.ts";
export { type Consumption, consumeQueue } from "./consume.ts";
export { consumeJson } from "./consume-json.ts";
export { isBrokerUnavailable } from "./failures.ts";
export { type OutgoingMessage, publishFenced } from "./fenced-publish.ts";
export { followBucket } from "./follow-bucket.ts";
export {
  type FollowedStream,
  followStream,
  type StreamIdentity,
  type StreamReader,
} from "./follow-stream.ts";
export { keepStreams } from "./keep-streams.ts";
export { messageHeaders, traceOf } from "./message-headers.ts";
export {
  createMessageSigner,
  createMessageVerifier,
  type Origin,
  type SignMessage,
  type VerifyMessage,
} from "./message-signatures.ts";
export type { NatsServers } from "./nats-servers.ts";
export { createDeadLetterReader, type DeadLetters } from "./newest-dead-letters.ts";
export { findNewest } from "./newest-value.ts";
export { parseJson } from "./parse-json.ts";
export type { QueueMessage, Verdict } from "./process-message.ts";
export { publishOnce, publishSigned, publishTraced } from "./publish-once.ts";
export type { StreamMessage } from "./push-message.ts";
export { createQueueMetrics, type QueueMetrics } from "./queue-metrics.ts";
export { readMessageIds, readPage } from "./read-tail.ts";
export {
  createSigner,
  hasSignature,
  type PublicKeys,
  publicKeysById,
  signerIn,
} from "./signer.ts";
export {
  boundStream,
  deleteStream,
  ensureAudit,
  ensureEvaluations,
  ensureFlagEvents,
  ensurePeople,
  ensureQuota,
  ensureSchedule,
  ensureSnapshot,
  ensureStreams,
  ensureUsage,
  expectedStreams,
  findStream,
  positionOf,
  type StreamPosition,
  type StreamSize,
  streamPosition,
} from "./streams.ts";
export { throttleLog } from "./throttled-log.ts";
export { countWaiting, findBacklog } from "./work-queue.ts";
