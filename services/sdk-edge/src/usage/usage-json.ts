import { type UsageEndpoint, usageEndpoints } from "@halyard/contracts";
import type { EnvironmentHour, FlagCount } from "./tally.ts";

/**
 * What was counted as JSON, in the words of the contract. With ten thousand environments in half a second
 * this is what counting costs most, so the text is put together by hand, in a third of the time; all that
 * stands in it are numbers, instants and ids that have been checked to be nothing else.
 */
export function environmentJson(
  environment: EnvironmentHour,
  flags: readonly CountedFlag[],
): string {
  const { bulkAnswers, bulkAnsweredAtMs } = environment;
  const answeredAt = bulkAnswers === 0 ? "null" : instantJson(bulkAnsweredAtMs);
  return `{${idsJson(environment)},"requests":{${requestsJson(environment.requests)}},"bulk_answers":${bulkAnswers},"bulk_answered_at":${answeredAt},"flags":[${flags.map(flagJson).join()}]}`;
}

/** Further flags of an environment whose requests have been told. */
export function moreFlagsJson(environment: EnvironmentHour, flags: readonly CountedFlag[]): string {
  return `{${idsJson(environment)},"requests":{},"bulk_answers":0,"bulk_answered_at":null,"flags":[${flags.map(flagJson).join()}]}`;
}

export function keyJson(keyId: string, usedAtMs: number): string {
  return `{"key_id":"${keyId}","used_at":${instantJson(usedAtMs)}}`;
}

export type CountedFlag = readonly [flagId: string, count: FlagCount];

function flagJson([flagId, { evaluations, evaluatedAtMs }]: CountedFlag): string {
  return `{"flag_id":"${flagId}","evaluations":${evaluations},"evaluated_at":${instantJson(evaluatedAtMs)}}`;
}

function idsJson(environment: EnvironmentHour): string {
  const { hourBeganMs, organizationId, projectId, environmentId } = environment;
  return `"hour":${instantJson(hourBeganMs)},"organization_id":"${organizationId}","project_id":"${projectId}","environment_id":"${environmentId}"`;
}

function requestsJson(requests: Record<UsageEndpoint, number>): string {
  let json = "";
  for (const endpoint of usageEndpoints)
    if (requests[endpoint] > 0)
      json += `${json === "" ? "" : ","}"${endpoint}":${requests[endpoint]}`;
  return json;
}

/** The texts of the seconds that were needed last: nearly all instants lie in the same one or two. */
const seconds = new Map<number, string>();
const mostSeconds = 64;

function instantJson(instantMs: number): string {
  const second = Math.floor(instantMs / 1_000);
  let text = seconds.get(second);
  if (text === undefined) {
    text = new Date(second * 1_000).toISOString().slice(0, "2027-01-31T09:00:00.".length);
    if (seconds.size === mostSeconds) seconds.clear();
    seconds.set(second, text);
  }
  const milliseconds = instantMs - second * 1_000;
  const zeros = milliseconds < 10 ? "00" : milliseconds < 100 ? "0" : "";
  return `"${text}${zeros}${milliseconds}Z"`;
}
