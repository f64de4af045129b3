import { join } from "node:path";
import type { Settings } from "./config.ts";
import type { DemoCredentials } from "./credentials.ts";

/** Returns the text printed after a start: the addresses, the demo keys, and commands that can be copied and run. */
export function welcome(options: {
  settings: Settings;
  baseUrl: string;
  demo: DemoCredentials | undefined;
  /** Hides the command that creates a flag, because its flag may already exist. */
  hasFlags: boolean;
  /** Contains the one-time code if there is a demo. Undefined if the dashboard could not be built. */
  dashboardUrl: string | undefined;
}): string {
  const { settings, baseUrl, demo, hasFlags, dashboardUrl } = options;
  const isLink = dashboardUrl?.includes("#") ?? false;
  const note = isLink ? ["The link signs in once, within five minutes."] : [];
  const dashboard = dashboardUrl === undefined ? [] : [`Dashboard: ${dashboardUrl}`, ...note, ""];
  const head = ["", `Halyard is ready at ${baseUrl} (API: ${baseUrl}/docs)`, "", ...dashboard];
  const tail = [`Data, keys and logs: ${settings.home}`, "Press Ctrl-C to stop.", ""];
  if (demo === undefined) {
    const operatorToken =
      settings.operatorToken === undefined
        ? `operator_token in ${join(settings.home, "credentials.json")}`
        : "the value of OPERATOR_TOKEN";
    const next = [
      `  Operator token: ${operatorToken}`,
      `  Create an organization and keys: ${join(settings.projectDir, "docs/deployment.md")}`,
    ];
    return [...head, ...next, "", ...tail].join("\n");
  }
  const create = [
    "Create a flag:",
    "",
    `  curl ${baseUrl}/api/v1/flags -H 'Authorization: Bearer ${demo.server_key}' -H 'Content-Type: application/json' -d '{"key":"new-checkout","name":"New checkout","enabled":true}'`,
    "",
  ];
  return [
    ...head,
    `  Client key (reads flags):    ${demo.client_key}`,
    `  Reader key (server SDKs):    ${demo.reader_key}`,
    `  Server key (manages flags):  ${demo.server_key}`,
    "",
    ...(hasFlags ? [] : create),
    "Read all flags as an application does:",
    "",
    `  curl ${baseUrl}/api/v1/sdk/flags -H 'Authorization: Bearer ${demo.client_key}'`,
    "",
    `Tutorial: ${join(settings.projectDir, "docs/tutorial.md")}`,
    ...tail,
  ].join("\n");
}
