import { join } from "node:path";
import type { Settings } from "./config.ts";
import type { DemoCredentials } from "./credentials.ts";

/** The last words of a start: where it is, and lines to copy that work as they are. */
export function welcome(options: {
  settings: Settings;
  baseUrl: string;
  demo: DemoCredentials | undefined;
  /** Then the flag of the line that creates one may exist. */
  hasFlags: boolean;
}): string {
  const { settings, baseUrl, demo, hasFlags } = options;
  const head = ["", `Halyard is ready at ${baseUrl} (API: ${baseUrl}/docs)`, ""];
  const tail = ["", `Data, keys and logs: ${settings.home}`, "Ctrl-C stops everything.", ""];
  if (demo === undefined) {
    const next = [
      `  Operator token: see ${settings.home}/credentials.json`,
      `  The way to an organization and keys: ${join(settings.projectDir, "docs/deployment.md")}`,
    ];
    return [...head, ...next, ...tail].join("\n");
  }
  const create = [
    "Create a flag:",
    "",
    `  curl ${baseUrl}/api/v1/flags -H 'Authorization: Bearer ${demo.server_key}' -H 'Content-Type: application/json' -d '{"key":"new-checkout","name":"New checkout","enabled":true}'`,
    "",
  ];
  return [
    ...head,
    `  Client key  ${demo.client_key}`,
    `  Server key  ${demo.server_key}`,
    "",
    ...(hasFlags ? [] : create),
    "Read all flags as an application does:",
    "",
    `  curl ${baseUrl}/api/v1/sdk/flags -H 'Authorization: Bearer ${demo.client_key}'`,
    ...tail,
  ].join("\n");
}
