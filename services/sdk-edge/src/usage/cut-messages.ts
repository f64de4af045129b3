import type { Tally } from "./tally.ts";
import { environmentJson, keyJson, moreFlagsJson } from "./usage-json.ts";

/**
 * Turns what was counted into messages that are small enough for the broker, one after the other as
 * they are asked for, so that however much has gathered, no more than one is made at a time.
 */
export type OutgoingUsage = { sequence: number; payload: string };

/** A quarter of what a NATS server takes unless it is told otherwise. */
const defaultMostBytes = 256 * 1024;

export function* cutMessages(
  tally: Tally,
  options: { edge: string; firstSequence: number; mostBytes?: number },
): Generator<OutgoingUsage, void> {
  const { edge, mostBytes = defaultMostBytes } = options;
  let sequence = options.firstSequence;
  let environments: string[] = [];
  let keys: string[] = [];
  let bytes = 0;

  const cut = (): OutgoingUsage => {
    const payload = `{"edge":"${edge}","sequence":${sequence},"environments":[${environments.join()}],"keys":[${keys.join()}]}`;
    const message = { sequence, payload };
    environments = [];
    keys = [];
    bytes = 0;
    sequence += 1;
    return message;
  };

  for (const { environment, isContinued } of environmentsOf(tally, mostBytes)) {
    if (bytes > 0 && (isContinued || bytes + environment.length > mostBytes)) yield cut();
    environments.push(environment);
    bytes += environment.length + 1;
  }
  for (const key of keysOf(tally)) {
    if (bytes > 0 && bytes + key.length > mostBytes) yield cut();
    keys.push(key);
    bytes += key.length + 1;
  }
  if (bytes > 0) yield cut();
}

/** What a flag takes in a message, rounded up. */
const flagBytes = 160;

/**
 * Environments as JSON. One with very many single flags goes on in further messages, which hold nothing
 * but flags of it; no message has the same environment and hour twice.
 */
function* environmentsOf(
  { environments }: Tally,
  mostBytes: number,
): Generator<{ environment: string; isContinued: boolean }, void> {
  const mostFlags = Math.max(1, Math.floor(mostBytes / 2 / flagBytes));
  for (const environment of environments) {
    const flags = environment.flags === undefined ? [] : [...environment.flags];
    const first = flags.slice(0, mostFlags);
    yield { environment: environmentJson(environment, first), isContinued: false };
    for (let from = mostFlags; from < flags.length; from += mostFlags) {
      const more = flags.slice(from, from + mostFlags);
      yield { environment: moreFlagsJson(environment, more), isContinued: true };
    }
  }
}

function* keysOf({ keys }: Tally): Generator<string, void> {
  for (const [keyId, { usedAtMs }] of keys) if (usedAtMs > 0) yield keyJson(keyId, usedAtMs);
}
