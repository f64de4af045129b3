import { setTimeout as delay } from "node:timers/promises";
import { inspect } from "node:util";

const pollIntervalMs = 10;

/** The real clock, because tests replace `performance.now`. */
const nowMs = performance.now.bind(performance);

/** Much longer than an idle machine needs, because several test files and their servers share the machine. */
const timeoutMs = 45_000;

/** Maximum length of a value in the message of a time-out. */
const maxShownValueLength = 2_000;

/**
 * Repeats a query until its result is accepted, and returns that result. By default, every result except undefined and
 * false is accepted. The query may throw in the meantime.
 *
 * The message of a time-out contains the last result and the last error. A comparison inside the query would reduce the
 * result to `false`. With `until`, the query returns the value and the message contains it:
 * `eventually(() => readStatus(), { until: (status) => status === 200 })`.
 */
export async function eventually<T>(
  query: () => T | Promise<T>,
  options: { withinMs?: number; because?: string; until?: (answer: T) => boolean } = {},
): Promise<Exclude<T, undefined | false>> {
  const { withinMs = timeoutMs, because, until = isGiven } = options;
  const deadline = nowMs() + withinMs;
  const seen: Seen = { tries: 0 };
  for (;;) {
    seen.tries += 1;
    try {
      const answer = await query();
      seen.answer = { value: answer, attempt: seen.tries };
      if (until(answer)) return answer as Exclude<T, undefined | false>;
    } catch (error) {
      seen.error = { value: error, attempt: seen.tries };
    }
    if (nowMs() > deadline) {
      const goal = because ?? (options.until ?? query).toString();
      throw new Error(`Not within ${withinMs} ms: ${goal}\n${describe(seen)}`, {
        cause: seen.error?.value,
      });
    }
    await delay(pollIntervalMs);
  }
}

/** The last result and the last error, each with the number of its attempt. */
type Seen = {
  tries: number;
  answer?: { value: unknown; attempt: number };
  error?: { value: unknown; attempt: number };
};

const isGiven = (answer: unknown) => answer !== undefined && answer !== false;

function describe({ tries, answer, error }: Seen): string {
  const lines = [`Tries: ${tries}.`];
  if (answer !== undefined)
    lines.push(`Last value (try ${answer.attempt}): ${shown(answer.value)}`);
  if (error !== undefined) lines.push(`Last error (try ${error.attempt}): ${shown(error.value)}`);
  return lines.join("\n");
}

function shown(value: unknown): string {
  const text = value instanceof Error ? String(value) : inspect(value, { depth: 5 });
  return text.length > maxShownValueLength ? `${text.slice(0, maxShownValueLength)}…` : text;
}
