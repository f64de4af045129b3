import type { Checked } from "@halyard/contracts";
import { type Consumption, type ConsumptionOptions, consumeQueue } from "./consume.ts";
import { isBrokerUnavailable } from "./failures.ts";
import { parseJson } from "./parse-json.ts";
import type { QueueMessage, Verdict } from "./process-message.ts";

/**
 * Consumes a work queue whose messages have one schema. An invalid message is dead-lettered. An unavailable broker
 * counts as an outage, because handlers may publish.
 */
export function consumeJson<T>({
  check,
  handle,
  onRetriesExhausted,
  isOutage,
  ...options
}: Omit<ConsumptionOptions, "handle" | "onRetriesExhausted"> & {
  check: (value: unknown) => Checked<T>;
  handle: (value: T, message: QueueMessage) => Promise<Verdict>;
  onRetriesExhausted?: (value: T, error: unknown) => Promise<void>;
}): Consumption {
  const read = ({ payload }: QueueMessage) => check(parseJson(payload));
  return consumeQueue({
    ...options,
    async handle(message) {
      const checked = read(message);
      return checked.ok ? handle(checked.value, message) : { deadLetter: checked.problem };
    },
    async onRetriesExhausted(message, error) {
      const checked = read(message);
      if (checked.ok) await onRetriesExhausted?.(checked.value, error);
    },
    isOutage: (error) => isOutage(error) || isBrokerUnavailable(error),
  });
}
