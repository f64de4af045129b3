import type { QueryClient } from "@tanstack/react-query";
import type { AuditedChange } from "../api/schema.d.ts";

/**
 * Time between a change and the reading of its deliveries. The dispatcher creates them after the change is announced,
 * and a burst of changes causes one reading.
 */
const creationMs = 1_000;

/** Has the deliveries on the screen read again after changes of flags and webhooks. */
export function createDeliveryRefresher(client: QueryClient) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const refresh = () => {
    timer = undefined;
    void client.invalidateQueries({ queryKey: ["deliveries"] });
  };
  return {
    take({ flag_key: key, action }: AuditedChange): void {
      if (key !== null || action.startsWith("webhook_")) timer ??= setTimeout(refresh, creationMs);
    },
    stop: () => clearTimeout(timer),
  };
}
