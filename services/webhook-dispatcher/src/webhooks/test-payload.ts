import type { EventName, WebhookPayload } from "@halyard/contracts";

/** The ids of a flag and an environment that are not there. */
const nothing = "00000000-0000-0000-0000-000000000000";

/**
 * What a test sends: an event of a kind that the webhook listens to, in its very shape, of a flag that
 * does not exist. Who asked for the test is told by id; the address is one that nobody has (RFC 2606).
 */
export function testPayload(
  events: readonly EventName[],
  occasion: { userId: string; at: Date },
): WebhookPayload {
  const event = events[0] ?? "flag.toggled";
  return {
    event,
    timestamp: occasion.at.toISOString(),
    flag: { id: nothing, key: "webhook-test", name: "Webhook test", enabled: true },
    environment: { id: nothing, name: "webhook-test" },
    triggered_by: { id: occasion.userId, email: "webhook-test@example.com" },
    ...(event === "flag_state.updated" && {
      state: { enabled: true, rollout_percentage: 100, targeting_rules: [] },
    }),
    ...(event === "flag.updated" && { changes: { name: { from: "Before", to: "Webhook test" } } }),
  };
}
