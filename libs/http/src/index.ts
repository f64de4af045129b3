export { type Answer, answer, createProblem, isProblem, type Problem } from "./answer.ts";
export { answerableErrors } from "./answer-checks.ts";
export { anyOriginHeaders, isOpenToAllOrigins, openPrefixes } from "./any-origin.ts";
export { type App, createApp } from "./app.ts";
export { appSettings } from "./app-settings.ts";
export { allowLongBody, boundBody } from "./body-timeout.ts";
export { acceptsGzip } from "./content-coding.ts";
export { hasDuplicateMembers } from "./duplicate-members.ts";
export { checkIfMatch, checkMatches, etagOf, namesTag } from "./entity-tag.ts";
export { noSuchRoute, sendProblem, writeProblem } from "./error-answers.ts";
export { fixedAnswer } from "./fixed-answer.ts";
export { checkIdempotencyKey } from "./idempotency-key.ts";
export { compileInputChecks, isWellEncoded } from "./input-checks.ts";
export { type BodyReading, bodyTooLarge, isJsonType, notJson, parseJsonBody } from "./json-body.ts";
export type { FailureLog } from "./limit-error-lines.ts";
export { maskKeys } from "./masked-keys.ts";
export { cursorOf, idOfCursor, noSuchCursor, pageOf, readCursor } from "./page.ts";
export {
  elementTexts,
  memberText,
  RawJson,
  stringify,
  textOfBody,
  tokensOf,
} from "./raw-json.ts";
export { escapeMalformedPath, pathAndQueryOf, pathOf } from "./request-target.ts";
export { type Awaitable, type RequestFacts, type RouteInput, registerRoute } from "./route.ts";
export {
  EventStream,
  heartbeatEvent,
  keepAlive,
  maxUnsentBytes,
  retryLine,
} from "./server-sent-events.ts";
export { UnavailableError } from "./unavailable-error.ts";
