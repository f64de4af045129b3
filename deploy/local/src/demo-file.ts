import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Reaper } from "@halyard/local-backends";
import type { DemoCredentials } from "./credentials.ts";
import { writePrivateFile } from "./private-file.ts";
import type { ServiceProcess } from "./service-process.ts";

/**
 * `demo.json` tells programs how to reach a run. It appears when everything is ready, disappears when
 * the run ends, and is rewritten with the new process id when a service was started again. In production
 * mode it has no demo organization.
 */
export function writeDemoFile(
  home: string,
  content: {
    baseUrl: string;
    operatorToken: string;
    demo: DemoCredentials | undefined;
    services: ServiceProcess[];
  },
): void {
  const { demo, services } = content;
  const document = {
    base_url: content.baseUrl,
    operator_token: content.operatorToken,
    ...(demo && {
      organization_id: demo.organization_id,
      project_id: demo.project_id,
      environment_id: demo.environment_id,
      client_key: demo.client_key,
      server_key: demo.server_key,
    }),
    services: Object.fromEntries(
      services.map(({ name, url, metricsUrl, pid }) => [
        name,
        { url, metrics_url: metricsUrl, pid },
      ]),
    ),
  };
  writePrivateFile(fileIn(home), `${JSON.stringify(document, null, 2)}\n`);
}

export function removeDemoFile(home: string): void {
  rmSync(fileIn(home), { force: true });
}

/** Also when this process is killed: the file holds keys, and ids of processes that end then. */
export function removeDemoFileWithUs(home: string, reaper: Reaper): void {
  reaper.removeAtOnce(fileIn(home));
}

function fileIn(home: string): string {
  return join(home, "demo.json");
}
