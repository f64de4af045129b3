/**
 * What a service can be told and the launcher only hands on: it goes to those that read it, as it is, and
 * they say what is wrong with it.
 */
export type SettingsOfServices = Readonly<Record<string, Readonly<Record<string, string>>>>;

const keyLimits = ["KEY_REQUESTS_PER_SECOND", "KEY_REQUESTS_BURST"];

const handedOn: Readonly<Record<string, readonly string[]>> = {
  management: ["PLANS", "AUDIT_RETENTION_DAYS", "ENDED_KEY_RETENTION_DAYS", ...keyLimits],
  scheduler: keyLimits,
  "sdk-edge": ["SDK_REQUESTS_PER_SECOND", "INVALID_KEYS_PER_SECOND", "INVALID_KEYS_BURST"],
  "usage-metering": ["USAGE_RETENTION_DAYS", ...keyLimits],
  "webhook-dispatcher": [
    "WEBHOOKS_PER_PROJECT",
    "WEBHOOK_TESTS_PER_ORGANIZATION",
    "WEBHOOK_RETRY_DELAYS",
    "WEBHOOK_DELIVERY_RETENTION_DAYS",
    ...keyLimits,
  ],
};

export function readSettingsOfServices(
  read: (variable: string) => string | undefined,
): SettingsOfServices {
  const settings: Record<string, Record<string, string>> = {};
  for (const [service, variables] of Object.entries(handedOn)) {
    const given = variables.flatMap((variable) => {
      const value = read(variable);
      return value === undefined ? [] : [[variable, value]];
    });
    settings[service] = Object.fromEntries(given);
  }
  return settings;
}
