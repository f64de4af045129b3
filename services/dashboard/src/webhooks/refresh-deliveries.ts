import type { AuditedChange } from "../api/schema.d.ts";

/**
 * Time between a change and the reading of its deliveries. The dispatcher creates them after the change is announced,
 * and a burst of changes causes one reading.
 */
const creationMs = 1_000;

/** Calls `onCreated` after changes of flags and webhooks, when their deliveries exist. */
export function createDeliveryRefresher(onCreated: () => void) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const created = () => {
    timer = undefined;
    onCreated();
  };
  return {
    take({ flag_key: key, action }: AuditedChange): void {
      if (key !== null || action.startsWith("webhook_")) timer ??= setTimeout(created, creationMs);
    },
    stop: () => clearTimeout(timer),
  };
}
