import type { Settings } from "./config.ts";
import type { DemoCredentials } from "./credentials.ts";

/** The last words of a start: where it is, and lines to copy that work as they are. */
export function welcome(options: {
  settings: Settings;
  baseUrl: string;
  demo: DemoCredentials | undefined;
}): string {
  const { settings, baseUrl, demo } = options;
  const head = ["", `Halyard is ready at ${baseUrl} (API: ${baseUrl}/docs)`, ""];
  const tail = ["", `Data, keys and logs: ${settings.home}`, "Ctrl-C stops everything.", ""];
  if (demo === undefined) {
    return [...head, `  Operator token: see ${settings.home}/credentials.json`, ...tail].join("\n");
  }
  return [
    ...head,
    `  Client key  ${demo.client_key}`,
    `  Server key  ${demo.server_key}`,
    "",
    "Create a flag, then read all flags as a client does:",
    "",
    `  curl ${baseUrl}/api/v1/flags -H 'Authorization: Bearer ${demo.server_key}' -H 'Content-Type: application/json' -d '{"key":"new-checkout","name":"New checkout","enabled":true}'`,
    "",
    `  curl ${baseUrl}/api/v1/sdk/flags -H 'Authorization: Bearer ${demo.client_key}'`,
    ...tail,
  ].join("\n");
}
