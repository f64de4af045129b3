import type { EnvironmentUsage, UsageRecorded } from "@halyard/contracts";
import type { EnvironmentHour, Tally } from "./counting.ts";

export type OutgoingUsage = { sequence: number; payload: string };

/**
 * Maximum size of a message with several environments or keys. A message with all flags and variations of one environment
 * can be larger, and is below the 1 MiB that a NATS server accepts by default.
 */
const defaultMaxBytes = 256 * 1024;

/** Cuts a tally into messages. The generator keeps at most one message in memory. */
export function* cutMessages(
  { environments, keys }: Tally,
  options: { edge: string; firstSequence: number; maxBytes?: number },
): Generator<OutgoingUsage, void> {
  const { edge, maxBytes = defaultMaxBytes } = options;
  let sequence = options.firstSequence;
  let bytes = 0;
  let parts: Record<keyof Parts, string[]> = { environments: [], keys: [] };

  for (const [kind, part] of partsOf(environments, keys)) {
    const json = JSON.stringify(part);
    if (bytes > 0 && bytes + json.length > maxBytes) yield message();
    parts[kind].push(json);
    bytes += json.length + 1;
  }
  if (bytes > 0) yield message();

  function message(): OutgoingUsage {
    const payload = `{"edge":"${edge}","sequence":${sequence},"environments":[${parts.environments.join()}],"keys":[${parts.keys.join()}]}`;
    const cut = { sequence, payload };
    sequence += 1;
    bytes = 0;
    parts = { environments: [], keys: [] };
    return cut;
  }
}

type Parts = Pick<UsageRecorded, "environments" | "keys">;
type Part = { [Kind in keyof Parts]: [Kind, Parts[Kind][number]] }[keyof Parts];

function* partsOf(environments: Tally["environments"], keys: Tally["keys"]): Generator<Part> {
  for (const environment of environments) yield ["environments", usageOf(environment)];
  for (const [keyId, { usedAtMs }] of keys)
    if (usedAtMs > 0) yield ["keys", { key_id: keyId, used_at: instant(usedAtMs) }];
}

function usageOf(environment: EnvironmentHour): EnvironmentUsage {
  const { bulkAnswers, bulkAnsweredAtMs, flags } = environment;
  return {
    hour: instant(environment.hourBeganMs),
    organization_id: environment.organizationId,
    project_id: environment.projectId,
    environment_id: environment.environmentId,
    requests: Object.fromEntries(
      Object.entries(environment.requests).filter(([, count]) => count > 0),
    ),
    bulk_answers: bulkAnswers,
    bulk_answered_at: bulkAnswers === 0 ? null : instant(bulkAnsweredAtMs),
    flags: Array.from(flags ?? [], ([flagId, { evaluations, evaluatedAtMs, variations }]) => ({
      flag_id: flagId,
      evaluations,
      evaluated_at: instant(evaluatedAtMs),
      ...(variations !== undefined && { variations: Object.fromEntries(variations) }),
    })),
  };
}

const instant = (ms: number) => new Date(ms).toISOString();
