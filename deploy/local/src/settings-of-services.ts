import { join } from "node:path";
import type { z } from "zod";

/** Variables that the launcher passes on to services, which define what they may contain. */
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

/** The configuration module of a service. */
type Described = { configSchema: { pick(names: Record<string, true>): z.ZodObject } };

/**
 * Returns what the services that read these settings would report about them, so that a mistake ends the
 * start before the databases start. Modules of services load only for settings that are given.
 */
export async function findProblemsOfServices(
  projectDir: string,
  settings: SettingsOfServices,
): Promise<string[]> {
  const problems = new Set<string>();
  for (const [service, given] of Object.entries(settings)) {
    if (Object.keys(given).length === 0) continue;
    const { ConfigurationError, readEnvironment } = await import("@halyard/service");
    const { configSchema }: Described = await import(
      join(projectDir, "services", service, "src/config.ts")
    );
    const names = Object.keys(given).map((name) => [name, true] as const);
    try {
      readEnvironment(configSchema.pick(Object.fromEntries(names)), given);
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      for (const problem of error.problems) problems.add(problem);
    }
  }
  return [...problems];
}
