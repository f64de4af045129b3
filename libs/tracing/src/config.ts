/**
 * Puts settings into the environment, where OpenTelemetry reads them: a value that was read from a file is not there.
 */
export function exportEnvironment(settings: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(settings))
    if (name.startsWith("OTEL_") && typeof value === "string") process.env[name] = value;
}
